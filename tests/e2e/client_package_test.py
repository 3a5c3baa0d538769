"""The client library as its users get it: installed, then built against in every way."""

import os
import shutil
import subprocess
import tempfile
import unittest

from profile_run import run

BUILD = os.environ["BUILD_DIRECTORY"]
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-g"]
PROGRAM = """
#include <heapprofd/heap_profile.h>
#include <stdio.h>
static int kept[100];
int main(void) {
  const uint32_t heap = AHeapProfile_registerHeap(AHeapInfo_create("com.example.packaged"));
  for (int i = 0; i < 100; ++i)
    AHeapProfile_reportAllocation(heap, (uint64_t)(uintptr_t)&kept[i], 64);
  heapprofd_nested_end(heapprofd_nested_begin(heap));
  heapprofd_label_push("a", "b");
  heapprofd_label_pop();
  heapprofd_mark("m");
  heapprofd_dump_now();
  AHeapProfile_reportFree(heap, (uint64_t)(uintptr_t)&kept[0]);
  printf("id %u\\n", heap);
  return 0;
}
"""
# The seed's example; its two cast expressions read reinterpret_cast here, since no compiler accepts a static_cast from
# a pointer to a number, and its placeholders are malloc and free.
SEED = """
#include "heapprofd/heap_profile.h"
#include <stdlib.h>

static uint32_t g_heap_id = AHeapProfile_registerHeap(
  AHeapInfo_create("invalid.example"));
void* my_malloc(size_t size) {
  void* ptr = malloc(size);
  AHeapProfile_reportAllocation(g_heap_id, reinterpret_cast<uintptr_t>(ptr), size);
  return ptr;
}

void my_free(void* ptr) {
  AHeapProfile_reportFree(g_heap_id, reinterpret_cast<uintptr_t>(ptr));
  free(ptr);
}

int main() {
  for (int i = 0; i < 50; ++i) {
    void* volatile kept = my_malloc(1000);
    (void)kept;
    my_free(my_malloc(10));
  }
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(heapprofd 0.1 REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE heapprofd::client)
add_executable(static main.c)
target_link_libraries(static PRIVATE heapprofd::client_static)
"""


class ClientPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="client_package_")
        cls.prefix = os.path.join(cls.directory, "prefix")
        for component in ("client", "client_dev"):
            cls.call("cmake", "--install", BUILD, "--component", component, "--prefix", cls.prefix)
        cls.libraries = next(os.path.join(root) for root, _, names in os.walk(cls.prefix)
                             if "libheapprofd_client.a" in names)
        cls.include = "-I" + os.path.join(cls.prefix, "include")
        cls.rpath = "-Wl,-rpath," + cls.libraries
        for name, text in {"main.c": PROGRAM, "seed.cc": SEED, "CMakeLists.txt": CMAKE}.items():
            with open(os.path.join(cls.directory, name), "w") as file:
                file.write(text)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    @classmethod
    def call(cls, *command, env=None):
        result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        return result.stdout

    def build(self, compiler, *arguments):
        output = os.path.join(self.directory, "a.out")
        self.call(*compiler, *FLAGS, self.include, *arguments, "-o", output)
        return output

    def check_profile(self, program):
        result = run([program], ["-i", "1", "--all-heaps"])
        self.assertEqual((result.exit_code, result.stdout), (0, "id 1\n"), result.stderr)
        self.assertEqual(result.heap("com.example.packaged").of("main")["space"], 99 * 64)

    def test_the_seeds_example_runs(self):
        program = self.build(["c++", "-std=c++11"], os.path.join(self.directory, "seed.cc"),
                             os.path.join(self.libraries, "heapprofd_standalone_client.so"), self.rpath)
        result = run([program], ["-i", "1", "--all-heaps"])
        found = result.heap("invalid.example").of("my_malloc")
        self.assertEqual((found["alloc_objects"], found["space"]), (100, 50 * 1000))

    def test_c11_and_cxx11_build_without_a_warning(self):
        main = os.path.join(self.directory, "main.c")
        for compiler in (["gcc", "-std=c11"], ["g++", "-x", "c++", "-std=c++11"], ["clang-14", "-std=c11"],
                         ["clang++-14", "-x", "c++", "-std=c++11"]):
            if shutil.which(compiler[0]):
                self.check_profile(self.build(compiler, main, "-x", "none", "-L" + self.libraries,
                                              "-lheapprofd_client", self.rpath))

    def test_without_the_library_the_header_does_nothing(self):
        main = os.path.join(self.directory, "main.c")
        for compiler in (["gcc", "-std=c11"], ["g++", "-x", "c++", "-std=c++11"]):
            program = self.build(compiler, "-DHEAPPROFD_NOOP", main)
            self.assertEqual(self.call(program), "id 0\n")

    def test_pkg_config_knows_it(self):
        env = {"PKG_CONFIG_PATH": os.path.join(self.libraries, "pkgconfig")}
        flags = self.call("pkg-config", "--cflags", "--libs", "heapprofd-client", env=env).split()
        self.check_profile(self.build(["gcc"], os.path.join(self.directory, "main.c"), *flags, self.rpath))

    def test_cmake_knows_it_shared_and_static(self):
        binary = os.path.join(self.directory, "consumer")
        self.call("cmake", "-S", self.directory, "-B", binary, "-DCMAKE_PREFIX_PATH=" + self.prefix,
                  "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
        self.call("cmake", "--build", binary)
        self.check_profile(os.path.join(binary, "shared"))
        self.check_profile(os.path.join(binary, "static"))

    def test_a_plugin_and_its_program_share_one_session(self):
        """Two copies of the library in one process, one of them static: heaps of both are in the same process."""
        plugin = os.path.join(self.directory, "plugin.so")
        with open(os.path.join(self.directory, "plugin.c"), "w") as file:
            file.write(PROGRAM.replace("int main(void)", "int plugged(void)").replace("packaged", "plugged"))
        with open(os.path.join(self.directory, "host.c"), "w") as file:
            file.write(PROGRAM.replace("return 0;",
                                       "int (*plugged)(void) = (int (*)(void))dlsym(dlopen(argv[1], 2), \"plugged\");"
                                       "return plugged();").replace("int main(void)", "#include <dlfcn.h>\nint main(int c, char** argv)"))
        self.call("gcc", "-g", "-O2", "-fPIC", "-shared", self.include, os.path.join(self.directory, "plugin.c"),
                  os.path.join(self.libraries, "libheapprofd_client.a"), "-o", plugin)
        host = os.path.join(self.directory, "host")
        self.call("gcc", "-g", "-O2", self.include, os.path.join(self.directory, "host.c"), "-L" + self.libraries,
                  "-lheapprofd_client", self.rpath, "-o", host)
        result = run([host, plugin], ["-i", "1", "--all-heaps"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertEqual(len({p.pid for p in result.pprofs}), 1)
        self.assertEqual(result.heap("com.example.packaged").of("main")["space"], 99 * 64)
        self.assertEqual(result.heap("com.example.plugged").of("plugged")["space"], 99 * 64)


if __name__ == "__main__":
    unittest.main()
