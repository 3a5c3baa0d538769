#!/usr/bin/python3
"""How many lines of each reader of foreign bytes the committed inputs of the fuzz targets reach.

fuzz_coverage.py BUILD_DIRECTORY [--markdown | --keep TARGET FOLDER]

The build is one of the preset `coverage`. tools/readers.txt lists the readers. Ends with 1 when one of them is below the goal.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOAL = 85  # % of the lines of each file
DEADLINE_S = 300  # of one target


def readers():
    """{heading: [(path, functions), ...]} of tools/readers.txt."""
    found, heading = {}, ""
    for line in (ROOT / "tools/readers.txt").read_text().splitlines():
        if line.startswith("["):
            heading = line.strip("[]")
        elif line and not line.startswith("#"):
            path, _, functions = line.partition(":")
            found.setdefault(heading, []).append((path, functions.split()))
    return found


class SourceFile:
    """Which lines of a file can run, and how often they have."""

    def __init__(self):
        self.counts = {}  # by line
        self.starts = []  # (line, name of a function as linkers know it)

    def figures(self, functions):
        """(lines, of them reached) of these functions, of all but these ("!name"), or of the whole file."""
        starts = sorted(set(self.starts))
        ends = [line for line, _ in starts[1:]] + [float("inf")]
        left_out = [function[1:] for function in functions if function.startswith("!")]
        is_named = {start: any(f"{len(function)}{function}" in name for function in left_out or functions) for start, name in starts}
        ranges = [(start, end) for (start, _), end in zip(starts, ends) if not functions or is_named[start] != bool(left_out)]
        counts = [count for line, count in self.counts.items() if any(start <= line < end for start, end in ranges)]
        return len(counts), sum(count > 0 for count in counts)


def parse(lcov):
    """{path: SourceFile} of what llvm-cov exports as lcov."""
    files, file = {}, None
    for line in lcov.splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            file = files.setdefault(os.path.relpath(value, ROOT), SourceFile())
        elif key == "FN":
            start, name = value.split(",", 1)
            file.starts.append((int(start), name))
        elif key == "DA":
            number, count = value.split(",")[:2]
            file.counts[int(number)] = int(count)
    return files


class Target:
    """A fuzz target and its committed inputs."""

    def __init__(self, path, build):
        self.path, self.name, self.build = path, os.path.basename(path), build
        listed = (build / "seeds" / f"{self.name}.list").read_text()
        self.inputs = listed.split(",") if listed else []

    def replay(self, inputs, profile):
        """Runs it over inputs, each once; an error's text or None."""
        done = subprocess.run([self.path, "-timeout=20", *(inputs or ["-runs=0"])], stdout=subprocess.DEVNULL,
                              env={**os.environ, "LLVM_PROFILE_FILE": str(profile)}, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=DEADLINE_S)
        return None if done.returncode == 0 else f"{self.name} failed:\n" + "\n".join(done.stderr.splitlines()[-20:])


def targets_of(build):
    (build / "profiles").mkdir(exist_ok=True)
    return [Target(path, build) for path in (build / "fuzzers").read_text().split()]


def export(profiles, programs, sources=()):
    """{path: SourceFile} of what ran."""
    merged = profiles[0].with_suffix(".profdata")
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", merged, *profiles], check=True)
    objects = [word for program in programs[1:] for word in ("-object", program)]
    return parse(subprocess.run(["llvm-cov-14", "export", "-format=lcov", f"-instr-profile={merged}", programs[0], *objects, *sources],
                                check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)


def measure(targets):
    """{path: SourceFile} of all committed inputs."""
    profiles = [target.build / "profiles" / f"{target.name}.profraw" for target in targets]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = [error for error in pool.map(lambda t, p: t.replay(t.inputs, p), targets, profiles) if error]
    if errors:
        sys.exit("\n".join(errors))
    return export(profiles, [target.path for target in targets])


def lines_of_readers(target, inputs):
    """(path, line) of all that these inputs reach; none when one of them fails, which is not to be kept."""
    paths = [path for group in readers().values() for path, _ in group]
    profile = target.build / "profiles" / "one.profraw"
    if target.replay(inputs, profile):
        return set()
    files = export([profile], [target.path], [str(ROOT / path) for path in paths])
    return {(path, line) for path, file in files.items() for line, count in file.counts.items() if count > 0}


def keep(target, learned):
    """Copies to the committed inputs those of `learned` that reach further lines of readers: the fewest, by greed."""
    with tempfile.TemporaryDirectory() as merged:
        subprocess.run([target.path, "-set_cover_merge=1", "-use_counters=0", "-max_len=4096", merged, learned], check=True,
                       env={**os.environ, "LLVM_PROFILE_FILE": "/dev/null"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        reached = lines_of_readers(target, target.inputs)
        found = {path: lines_of_readers(target, [str(path)]) for path in sorted(pathlib.Path(merged).iterdir())}
        count = 0
        while (best := max(found, key=lambda path: len(found[path] - reached), default=None)) and found[best] - reached:
            (source,) = (ROOT / "src").rglob(f"{target.name}.cc")
            folder = ROOT / "src" / source.relative_to(ROOT / "src").parts[0] / "testdata" / target.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(best, folder / best.name[:8])
            reached |= found.pop(best)
            count += 1
    print(f"{target.name}: {count} more inputs, {len(reached)} lines of readers")


def row(name, lines, reached, markdown):
    share = 100 * reached / lines if lines else 0
    return f"| {name} | {lines} | {share:.0f} % |" if markdown else f"{name:50} {lines:6} {share:5.0f} %"


def report(targets, markdown):
    """The exit code: 1 when a reader is below the goal."""
    measured = measure(targets)
    below, all_lines, all_reached = [], 0, 0
    for heading, paths in readers().items():
        figures = {path: measured.get(path, SourceFile()).figures(functions) for path, functions in paths}
        lines, reached = (sum(figure[i] for figure in figures.values()) for i in (0, 1))
        all_lines, all_reached = all_lines + lines, all_reached + reached
        print(row(heading, lines, reached, markdown))
        for path, figure in figures.items():
            if 100 * figure[1] < GOAL * max(figure[0], 1):
                below.append(path)
            if not markdown:
                print(row("  " + path, *figure, False))
    print(row("all", all_lines, all_reached, markdown))
    if below:
        print(f"below {GOAL} %: {' '.join(below)}", file=sys.stderr)
    return 1 if below else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--markdown", action="store_true", help="a table by heading, as in docs/fuzzing.md")
    parser.add_argument("--keep", nargs=2, action="append", metavar=("TARGET", "FOLDER"), default=[],
                        help="keep those inputs in the folder that reach further lines")
    arguments = parser.parse_args()
    targets = targets_of(arguments.build.resolve())
    for name, learned in arguments.keep:
        keep(next(target for target in targets if target.name == name), learned)
    return 0 if arguments.keep else report(targets, arguments.markdown)


if __name__ == "__main__":
    sys.exit(main())
