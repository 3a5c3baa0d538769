"""Runs heap_profile on a program and reads what it wrote."""

import glob
import gzip
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pprof_pb2

# The shell that runs the tests in its background ignores it, and what is started inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)

HEAP_PROFILE = os.environ["HEAP_PROFILE"]
PROGRAMS = os.environ["TEST_PROGRAMS"]
VIEWS = ["alloc_objects", "alloc_space", "objects", "space"]
REQUESTED = "dump: requested by the program"
VIEWS_AT_MAX = [*VIEWS, "max_objects", "max_space"]


def program(name):
    """Path of one of tests/programs."""
    return os.path.join(PROGRAMS, name)


def script(directory, name, text):
    """Path of a new file that can be executed."""
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def runs(path):
    try:
        subprocess.run([path], capture_output=True)
        return True
    except OSError:
        return False


# Needs a kernel that does, and a loader (Debian package libc6-i386).
RUNS_32_BIT = runs(program("hello32"))


class Pprof:
    """One heap_dump file: totals per view and per function."""

    def __init__(self, path):
        self.number, self.pid, self.heap = re.fullmatch(
            r"heap_dump\.(\d+)\.(\d+)\.(.+)\.pb(?:\.gz)?", os.path.basename(path)).groups()
        self.pid = int(self.pid)
        self.profile = pprof_pb2.Profile()
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            self.profile.ParseFromString(file.read())
        strings = self.profile.string_table
        types = [strings[t.type] for t in self.profile.sample_type]
        assert types in (VIEWS, VIEWS_AT_MAX), types
        self.views = types
        names = {f.id: strings[f.name] for f in self.profile.function}
        self.locations = {l.id: [names[line.function_id] for line in l.line] for l in self.profile.location}
        mappings = {m.id for m in self.profile.mapping}
        assert all(l.mapping_id in mappings for l in self.profile.location)
        self.comments = [strings[c] for c in self.profile.comment]

    def stacks(self):
        """Yields (functions, innermost first; values by view)."""
        for sample in self.profile.sample:
            functions = [name for id in sample.location_id for name in self.locations[id]]
            yield functions, dict(zip(self.views, sample.value))

    def by_label(self, view):
        """Sums of a view by the sample's labels: {((key, value), ...): sum}, innermost label first."""
        strings = self.profile.string_table
        sums = {}
        for sample in self.profile.sample:
            labels = tuple((strings[label.key], strings[label.str]) for label in sample.label)
            sums[labels] = sums.get(labels, 0) + sample.value[VIEWS.index(view)]
        return sums

    def total(self, view):
        return sum(values[view] for _, values in self.stacks())

    def of(self, function):
        """Values by view of all stacks with this function in them."""
        sums = dict.fromkeys(self.views, 0)
        for functions, values in self.stacks():
            if any(name.split("(")[0] == function for name in functions):
                for view in self.views:
                    sums[view] += values[view]
        return sums


class Run:
    """A finished run: exit code, output, profiles by pid."""

    def __init__(self, directory, process, stdout, stderr):
        self.exit_code = process.returncode
        self.stdout = stdout
        self.stderr = stderr
        self.trace = os.path.join(directory, "raw-trace")
        self.trace_bytes = b""
        if os.path.exists(self.trace):
            with open(self.trace, "rb") as file:
                self.trace_bytes = file.read()
        self.trace_size = len(self.trace_bytes)
        self.pprofs = [Pprof(path) for path in sorted(glob.glob(os.path.join(directory, "heap_dump.*")))]

    @property
    def main(self):
        """The profile that heap_profile shows first: the process with the highest peak."""
        return next(p for p in self.pprofs if p.number == "1")

    def heap(self, name):
        """The last profile of the heap with this name, of the first process that has one."""
        return next(p for p in self.pprofs if p.heap == name and REQUESTED not in p.comments)


class Started:
    """A run that is under way."""

    def __init__(self, command, options=(), env=None, start_new_session=False, tool=HEAP_PROFILE):
        self.directory = tempfile.mkdtemp(prefix="heap_profile_test_")
        self.process = subprocess.Popen(
            [tool, "-o", self.directory, *options, "--", *command],
            # Names that an earlier run has kept would hide what this one does.
            env={**os.environ, "XDG_CACHE_HOME": self.directory + "_cache", **(env or {})}, text=True,
            start_new_session=start_new_session,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, timeout=120):
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
            return Run(self.directory, self.process, stdout, stderr)
        finally:
            self.process.kill()
            shutil.rmtree(self.directory, ignore_errors=True)
            shutil.rmtree(self.directory + "_cache", ignore_errors=True)


def run(command, options=(), env=None, tool=HEAP_PROFILE):
    """Runs to the end."""
    return Started(command, options, env, tool=tool).finish()
