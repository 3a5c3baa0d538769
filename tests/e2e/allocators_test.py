"""The malloc family over the allocators that programs bring along."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program, run
from running_process import MAY_ATTACH, Attached, Running

ALLOCATORS = {
    "glibc": None,
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "mimalloc": "libmimalloc.so.2",
}
CHURN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  puts("ready");
  fflush(stdout);
  for (;; usleep(100)) {
    void* volatile block = malloc(1000);
    free(block);
  }
}
"""


class Allocators(unittest.TestCase):
    def compare_with_plain(self, name, result, env):
        """mimalloc's operator new aborts when memory runs out: then it must do so with us, too."""
        plain = subprocess.run([program(name)], env={**os.environ, **env}, capture_output=True, text=True)
        code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
        self.assertEqual((result.exit_code, result.stdout), (code, plain.stdout), result.stderr)

    def test_the_family_behaves_as_without_us(self):
        for name, library in ALLOCATORS.items():
            env = {"LD_PRELOAD": library} if library else {}
            with self.subTest(name):
                result = run([program("family")], ["-i", "1"], env)
                self.compare_with_plain("family", result, env)
                if result.exit_code == 0:
                    found = result.main.of("succeeds")
                    self.assertEqual(found["objects"], 0, name)
                    self.assertEqual(found["alloc_objects"], 200 * 3 * 9, name)
                    self.assertEqual(result.main.of("fails")["alloc_objects"], 200, name)

    def test_odd_corners_are_those_of_the_allocator(self):
        for name, library in ALLOCATORS.items():
            env = {"LD_PRELOAD": library} if library else {}
            with self.subTest(name):
                result = run([program("corners")], ["-i", "1"], env)
                self.compare_with_plain("corners", result, env)
                self.assertEqual(result.main.of("balanced")["objects"], 0, name)

    def test_a_malloc_in_the_executable_is_said_to_be_unseen(self):
        words = (f"{program('own_malloc')} has a malloc of its own (an allocator that is linked statically), of which a "
                 "preloaded library sees only what that asks of the next one; start it by itself and record it with "
                 "heap_profile -p PID, or link the allocator dynamically")
        result = run([program("own_malloc")])
        self.assertIn("heap_profile: nothing recorded: " + words, result.stderr)
        self.assertNotIn("smaller --interval", result.stderr)
        all_of_it = run([program("own_malloc")], ["-i", "1"])
        self.assertIn("  ! " + words, all_of_it.stderr)
        with tempfile.NamedTemporaryFile() as trace:
            trace.write(all_of_it.trace_bytes)
            trace.flush()
            shown = subprocess.run([HEAP_PROFILE, "show", trace.name], capture_output=True, text=True)
        self.assertIn("  ! " + words, shown.stdout)
        self.assertNotIn("malloc of its own", run([program("known_stacks")]).stderr)

    def test_jemallocs_own_interface_is_recorded(self):
        env = {"LD_PRELOAD": ALLOCATORS["jemalloc"]}
        result = run([program("jemalloc_api")], ["-i", "1"], env)
        self.compare_with_plain("jemalloc_api", result, env)
        truth = json.loads(result.stdout)
        self.assertEqual(len(truth), 5)
        for function, (allocated, live, live_bytes) in truth.items():
            found = result.main.of(function)
            self.assertEqual((found["alloc_objects"], found["objects"], found["space"]), (allocated, live, live_bytes),
                             function)

    def test_a_program_that_finds_jemallocs_names_can_use_them_over_any_allocator(self):
        for name in ("glibc", "tcmalloc", "mimalloc"):
            with self.subTest(name):
                env = {"LD_PRELOAD": ALLOCATORS[name]} if ALLOCATORS[name] else {}
                result = run([program("jemalloc_api")], ["-i", "1"], env)
                self.assertEqual(result.exit_code, 0, result.stderr)
                for function, (allocated, live, live_bytes) in json.loads(result.stdout).items():
                    found = result.main.of(function)
                    self.assertEqual((found["alloc_objects"], found["objects"], found["space"]),
                                     (allocated, live, live_bytes), (name, function))

    def test_pvalloc_is_recorded(self):
        result = run([program("corners"), "pvalloc"], ["-i", "1"])
        self.assertIn("pvalloc gives a whole page: 1", result.stdout)
        found = result.main.of("whole_page")
        self.assertEqual((found["alloc_objects"], found["objects"]), (1, 0))

    def test_operators_of_the_allocator_are_recorded(self):
        for name, library in ALLOCATORS.items():
            env = {"LD_PRELOAD": library} if library else {}
            with self.subTest(name):
                result = run([program("cpp_new")], ["-i", "1"], env)
                self.compare_with_plain("cpp_new", result, env)
                for function in ("plain_new", "array_new", "nothrow_new", "aligned_new", "sized_delete"):
                    found = result.main.of(function)
                    self.assertEqual((found["alloc_objects"], found["objects"]), (400, 200), (name, function))

    @unittest.skipUnless(MAY_ATTACH and shutil.which("gcc"), "attaching is not allowed here, or there is no gcc")
    def test_a_sanitizers_allocator_is_hooked_whole_by_attaching(self):
        """libasan's free calls within the bytes that the jump replaces."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "sanitized")
            subprocess.run(["gcc", "-fsanitize=address", "-x", "c", "-", "-o", path], input=CHURN, text=True, check=True)
            with Running([path]) as sanitized:
                attached = Attached(sanitized.pid, 1000, ["-i", "1"])
                self.assertEqual(attached.result.returncode, 0, attached.result.stderr)
                self.assertNotIn("cannot record", attached.result.stderr)
                self.assertGreater(attached.stats["alloc_calls"], 0)
                self.assertLessEqual(attached.stats["live_bytes"], 1000)
                doctor = subprocess.run([HEAP_PROFILE, "doctor", "-p", str(sanitized.pid)], capture_output=True, text=True)
                self.assertNotIn("no hook for", doctor.stdout)


if __name__ == "__main__":
    unittest.main()
