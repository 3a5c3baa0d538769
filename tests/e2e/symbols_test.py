"""Where names come from: symbol directories, the cache, and files that are damaged."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, run

SOURCE = """
#include <cstdlib>
#include <vector>
static inline void* Inlined(int n) { return std::malloc(n); }
__attribute__((noinline)) void* Hidden(int n) { char* p = static_cast<char*>(Inlined(n)); *p = 1; return p; }
int main() { std::vector<void*> kept; for (int i = 0; i < 5000; ++i) kept.push_back(Hidden(4000)); return kept.empty(); }
"""


class Symbols(unittest.TestCase):
    """A program without symbols, and a directory that has them."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        source = os.path.join(self.directory, "program.cc")
        with open(source, "w") as file:
            file.write(SOURCE)
        self.symbols = os.path.join(self.directory, "symbols")
        os.mkdir(self.symbols)
        self.full = os.path.join(self.symbols, "program")
        self.program = os.path.join(self.directory, "program")
        subprocess.run(["g++", "-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", source, "-o", self.full],
                       check=True)
        subprocess.run(["strip", "-s", "-o", self.program, self.full], check=True)

    def profile(self, **env):
        result = run([self.program], env={"XDG_CACHE_HOME": os.path.join(self.directory, "cache"), **env})
        self.assertEqual(result.exit_code, 0, result.stderr)
        return result

    def test_a_stripped_program_has_no_names_and_the_summary_says_what_to_do(self):
        result = self.profile()
        self.assertEqual(result.main.of("Hidden")["alloc_space"], 0)
        self.assertRegex(result.stderr, r"\d+% of allocated bytes belong to functions without a name in program: it has no "
                                        "symbols for them; build it without stripping")
        self.assertIn("PERFETTO_BINARY_PATH", result.stderr)

    def test_names_and_inlined_calls_come_from_the_directory(self):
        result = self.profile(PERFETTO_BINARY_PATH="/nowhere:" + self.symbols)
        self.assertGreater(result.main.of("Hidden")["alloc_space"], 15_000_000)
        self.assertGreater(result.main.of("Inlined")["alloc_space"], 15_000_000)

    def test_a_program_without_a_build_id_has_its_names_in_all_dumps(self):
        """Also those of frames that the trace had before their names were known."""
        source = os.path.join(self.directory, "program.cc")
        subprocess.run(["g++", "-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id=none", source, "-o", self.program], check=True)
        for options in ([], ["--dump-at-max"], ["-c", "5"]):
            with self.subTest(options):
                result = run([self.program], options)
                unnamed = [name for profile in result.pprofs for functions, _ in profile.stacks() for name in functions
                           if name.startswith("program+")]
                self.assertEqual(unnamed, [], result.stderr)
                # The first of many dumps may be of a time before the program's own calls.
                end = max(result.pprofs, key=lambda profile: int(profile.number))
                self.assertGreater(end.of("Hidden")["alloc_space"], 15_000_000, result.stderr)
                self.assertGreater(end.of("Inlined")["alloc_space"], 15_000_000, result.stderr)
                self.assertRegex(result.stderr, r"1  Inlined  program.cc:4 +1\d\.\d MiB")

    def test_lines_and_inlined_calls_can_be_added_to_names(self):
        """A stripped file that exports its functions names them; the rest comes later."""
        subprocess.run(["g++", "-O2", "-g", "-rdynamic", "-Wl,--build-id", os.path.join(self.directory, "program.cc"),
                        "-o", self.full], check=True)
        subprocess.run(["strip", "-s", "-o", self.program, self.full], check=True)
        recorded = os.path.join(self.directory, "recorded")
        cache = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.directory, "cache")}
        known = {**cache, "PERFETTO_BINARY_PATH": self.symbols}
        trace = os.path.join(recorded, "raw-trace")
        whole = os.path.join(self.directory, "symbolized-trace")
        subprocess.run([HEAP_PROFILE, "-q", "--no-report", "-o", recorded, "--", self.program], env=cache, check=True)
        symbols = subprocess.run([HEAP_PROFILE, "traceconv", "symbolize", trace], env=known, stdout=subprocess.PIPE, check=True)
        with open(trace, "rb") as file, open(whole, "wb") as both:
            both.write(file.read() + symbols.stdout)
        for path, env, place in ((trace, cache, r"Hidden +1"), (trace, known, r"Inlined  program\.cc:4 +1"),
                                 (whole, cache, r"Inlined  program\.cc:4 +1")):
            shown = subprocess.run([HEAP_PROFILE, "show", path], env=env, stdout=subprocess.PIPE, text=True, check=True)
            self.assertRegex(shown.stdout, r"1  " + place)
        again = subprocess.run([HEAP_PROFILE, "traceconv", "symbolize", whole], env=known, capture_output=True, check=True)
        self.assertEqual(again.stdout, b"")
        self.assertIn(b"there is nothing to add: all addresses have symbols, or no file that tells more of them was found; "
                      b"PERFETTO_BINARY_PATH names directories to look in", again.stderr)

    def test_a_renamed_file_is_found_by_build_id(self):
        os.makedirs(os.path.join(self.symbols, "deep", "down"))
        os.rename(self.full, os.path.join(self.symbols, "deep", "down", "renamed"))
        for mode, found in [("find", False), ("index", True)]:
            result = self.profile(PERFETTO_BINARY_PATH=self.symbols, PERFETTO_SYMBOLIZER_MODE=mode)
            self.assertEqual(result.main.of("Hidden")["alloc_space"] > 0, found, mode)

    def test_a_file_of_another_build_is_not_used(self):
        subprocess.run(["g++", "-O1", "-g", "-Wl,--build-id", os.path.join(self.directory, "program.cc"),
                        "-o", self.full], check=True)
        result = self.profile(PERFETTO_BINARY_PATH=self.symbols)
        self.assertEqual(result.main.of("Hidden")["alloc_space"], 0)

    def test_names_are_kept_for_the_next_run(self):
        self.profile(PERFETTO_BINARY_PATH=self.symbols)
        shutil.rmtree(self.symbols)
        self.assertGreater(self.profile().main.of("Hidden")["alloc_space"], 15_000_000)

    @unittest.skipUnless(shutil.which("llvm-symbolizer"), "no llvm-symbolizer here")
    def test_llvm_symbolizer_gives_the_same_names(self):
        ours = self.profile(PERFETTO_BINARY_PATH=self.symbols)
        theirs = self.profile(PERFETTO_BINARY_PATH=self.symbols, HEAPPROFD_SYMBOLIZER="llvm-symbolizer")

        def stack(result):
            return max(((values["alloc_space"], functions) for functions, values in result.main.stacks()))[1]

        self.assertEqual(stack(ours), stack(theirs))

    def test_a_damaged_file_costs_its_names_only(self):
        damaged = os.path.join(self.symbols, "damaged")
        with open(self.full, "rb") as file:
            data = bytearray(file.read())
        subprocess.run(["objcopy", "--dump-section", f".debug_info={damaged}", self.full, "/dev/null"], check=False)
        begin = data.find(pathlib.Path(damaged).read_bytes()[:64]) if os.path.exists(damaged) else len(data) // 2
        for i in range(begin + 11, min(begin + 4000, len(data))):
            data[i] = (data[i] * 7 + i) % 256
        with open(self.full, "wb") as file:
            file.write(data)
        result = self.profile(PERFETTO_BINARY_PATH=self.symbols)
        self.assertGreater(result.main.total("alloc_space"), 15_000_000)

    def test_mapping_files_are_kept_with_the_trace(self):
        mapping = os.path.join(self.directory, "mapping.txt")
        with open(mapping, "w") as file:
            file.write("com.example.Store -> a.b:\n    int read(byte[]) -> c\n")
        for env in ({}, {"PERFETTO_BINARY_PATH": self.symbols}):
            out = os.path.join(self.directory, "out")
            subprocess.run([HEAP_PROFILE, "-q", "-o", out, "--", self.program], check=True, cwd=self.directory,
                           env={**os.environ, "PERFETTO_PROGUARD_MAP": "com.example=mapping.txt", **env})
            raw, added, complete = (pathlib.Path(out, name).read_bytes()
                                    for name in ("raw-trace", "deobfuscation-packets", "symbolized-trace"))
            self.assertIn(b"com.example.Store", added)
            self.assertEqual(complete, raw + added)
            shutil.rmtree(out)

    def test_a_mapping_file_that_is_missing_is_refused_before_the_program_runs(self):
        result = run([self.program], env={"PERFETTO_PROGUARD_MAP": "com.example=/nonexistent/mapping.txt"})
        self.assertNotEqual(result.exit_code, 0)
        self.assertIn("/nonexistent/mapping.txt", result.stderr)
        self.assertEqual(result.trace_size, 0)

    def test_a_variable_without_meaning_is_refused_before_the_program_runs(self):
        for name in ["PERFETTO_SYMBOLIZER_MODE", "HEAPPROFD_SYMBOLIZER"]:
            result = run([self.program], env={name: "magic"})
            self.assertEqual(result.exit_code, 2, name)
            self.assertIn(name + "=magic", result.stderr)


if __name__ == "__main__":
    unittest.main()
