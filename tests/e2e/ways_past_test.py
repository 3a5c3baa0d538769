"""Libraries that lead past interposed symbols: seen all the same, or it is said that they are not."""

import itertools
import json
import os
import re
import subprocess
import tempfile
import unittest

from profile_run import PROGRAMS, program, run
from running_process import MAY_ATTACH, Engine
from service_run import Recording
from with_directory import WithDirectory

PLUGIN = os.path.join(PROGRAMS, "libways_past_plugin.so")
KEPT, FREED = 1000, 500
RUNPATH = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
int run(void) { return dlopen("libhidden.so", RTLD_NOW MODE) == 0; }
"""
WRAPPER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static void* (*next)(size_t);
void* malloc(size_t size) {
  if (next == 0)
    next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  return next(size);
}
"""


def figures_of(command, env=None):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "stats.json")
        result = run(command, ["-i", "1"], {"HEAPPROFD_STATS_JSON": path, **(env or {})})
        with open(path) as file:
            return result, json.load(file)


class WaysPast(WithDirectory):
    def library(self, name, source, *options):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.path(name), *options], input=source, text=True, check=True)
        return self.path(name)

    def recorded(self, way, env=None):
        result, figures = figures_of([program("ways_past"), way, PLUGIN], env)
        self.assertEqual(result.exit_code, 7, result.stderr)
        return result, figures

    def check_all(self, result, keeper):
        """Both sides are recorded exactly, and who frees what the other has allocated."""
        self.assertEqual(result.main.of(keeper), {"alloc_objects": KEPT, "alloc_space": KEPT * 1000, "objects": KEPT,
                                                  "space": KEPT * 1000})
        self.assertEqual(result.main.of("host_allocates"), {"alloc_objects": FREED, "alloc_space": FREED * 2000, "objects": 0,
                                                            "space": 0})
        self.assertNotIn("RTLD_DEEPBIND", result.stderr)

    def test_plugins_that_are_bound_deeply(self):
        for way in ("deepbind", "now", "plain"):
            for env in ({}, {"LD_BIND_NOW": "1"}):
                with self.subTest(way, env=env):
                    result, figures = self.recorded(way, env)
                    self.check_all(result, "plugin_keeps")
                    self.assertEqual(figures["deepbind_opens"], 0)

    def test_functions_that_are_asked_of_libc_itself(self):
        self.check_all(self.recorded("handle")[0], "keep_by_handle")

    def test_an_allocator_of_its_own_is_passed_and_that_is_said(self):
        for allocator in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
            with self.subTest(allocator):
                result, figures = self.recorded("apart", {"LD_PRELOAD": allocator})
                self.assertEqual(result.main.of("host_allocates")["alloc_objects"], FREED)
                self.assertEqual(result.main.of("plugin_keeps")["alloc_objects"], 0)
                self.assertEqual(figures["deepbind_opens"], 1)
                self.assertIn("! 1 call of dlopen with RTLD_DEEPBIND: what these libraries allocate in the C library", result.stderr)

    def test_another_namespace_is_said_not_to_be_recorded(self):
        result, figures = self.recorded("namespace")
        self.assertEqual(result.main.of("host_allocates")["alloc_objects"], FREED)
        self.assertEqual(result.main.of("plugin_keeps")["alloc_objects"], 0)
        self.assertEqual(figures["namespace_opens"], 1)
        self.assertIn("! 1 call of dlmopen: what libraries in a namespace of their own allocate is not recorded", result.stderr)

    @unittest.skipUnless(MAY_ATTACH, "may not attach here")
    def test_what_is_loaded_after_attaching_is_said_and_before_it_is_recorded(self):
        for word, keeps in (("ready", 0), ("opened", KEPT)):
            with self.subTest(word), Engine() as engine, subprocess.Popen(
                    [program("ways_past"), "namespace", PLUGIN, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                def go_to(wanted):
                    while process.stdout.readline().strip() != wanted:
                        process.stdin.write("\n")
                        process.stdin.flush()

                go_to(word)
                recording = Recording(engine, ["-i", "1", "-p", str(process.pid)]).wait_active()
                process.stdin.write("\n")
                process.stdin.flush()
                go_to("done")
                recording.finish()
                process.communicate("\n")
                self.assertEqual(recording.pprofs[0].of("plugin_keeps")["alloc_objects"], keeps, recording.stderr)
                said = re.search(r"cannot record all of process \d+: it has loaded \S*libc\S* since heap_profile attached", recording.stderr)
                self.assertEqual(said is not None, keeps == 0, recording.stderr)

    def test_who_stands_between_counts_once(self):
        """An interposed malloc that asks for the next one is neither counted twice nor called by itself."""
        wrapper = self.library("libwrapper.so", WRAPPER)
        for way in ("plain", "handle"):
            with self.subTest(way):
                result, _ = self.recorded(way, {"LD_PRELOAD": wrapper})
                self.assertEqual(result.main.of("host_allocates")["alloc_objects"], FREED)

    def test_the_callers_runpath_holds(self):
        self.library("sub/libhidden.so", "int hidden(void) { return 0; }")
        for mode in ("", "| RTLD_DEEPBIND"):
            self.library("libasks.so", RUNPATH.replace("MODE", mode), f"-Wl,-rpath,{self.path('sub')},--enable-new-dtags")
            subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", self.path("asks"), self.path("libasks.so"),
                            f"-Wl,-rpath,{self.path('')}"], input="int run(void); int main(void) { return run(); }", text=True, check=True)
            with self.subTest(mode):
                self.assertEqual(run([self.path("asks")]).exit_code, 0)

    def test_the_mappings_of_libc_are_protected_as_without_us(self):
        def protections(text):
            found = re.findall(r"^\S+ (\S{4}) \S+ \S+ \S+ +\S*/libc\.so\.6$", text, re.MULTILINE)
            return [protection for protection, _ in itertools.groupby(found)]  # one of them is in pieces

        plain = subprocess.run(["cat", "/proc/self/maps"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(protections(run(["cat", "/proc/self/maps"]).stdout), protections(plain))


if __name__ == "__main__":
    unittest.main()
