"""Every promise of the ELF contract has a library here that breaks it."""

import os
import subprocess
import tempfile
import unittest

import check_client_elf


class CheckClientElf(unittest.TestCase):
    def problems(self, source, *flags):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.so")
            subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", path, *flags],
                           input=source, text=True, check=True)
            return "\n".join(check_client_elf.problems_of(path))

    def test_a_foreign_export_is_found(self):
        self.assertIn("exports memcpy", self.problems("void memcpy(void) {}", "-fno-builtin"))

    def test_a_missing_export_is_found(self):
        self.assertIn("does not export calloc", self.problems("void malloc(void) {}", "-fno-builtin"))

    def test_a_missing_probe_is_found(self):
        self.assertIn("no probe otel_memory:alloc", self.problems("void malloc(void) {}", "-fno-builtin"))

    def test_a_broken_interface_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.so")
            subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", path],
                           input="void AHeapInfo_create(void) {}", text=True, check=True)
            problems = "\n".join(check_client_elf.interface_problems_of(path))
        self.assertIn("is not named libheapprofd_client.so.1", problems)
        self.assertIn("exports AHeapInfo_create without the version", problems)

    def test_an_import_is_found(self):
        self.assertIn("imports getenv", self.problems("extern void getenv(void); void f(void) { getenv(); }"))

    def test_a_strong_import_is_found(self):
        self.assertIn("not weakly", self.problems("extern int _r_debug; int f(void) { return _r_debug; }"))

    def test_a_needed_library_is_found(self):
        self.assertIn("needs libm.so.6", self.problems("void f(void) {}", "-Wl,--no-as-needed", "-lm"))

    def test_a_version_of_a_later_c_library_is_found(self):
        source = "int pthread_create(void); int f(void) { return pthread_create(); }"
        self.assertIn("needs GLIBC_2.34, which is not", self.problems(source, "-fno-builtin", "-Wl,--no-as-needed", "-lc"))

    def test_versions_are_compared_by_their_numbers(self):
        for version, expected in {"GLIBC_2.4": True, "GLIBC_2.2.5": True, "GLIBC_2.28": True, "GLIBC_2.29": False,
                                  "GLIBC_2.100": False, "GLIBC_PRIVATE": False, "GLIBC_ABI_DT_RELR": False}.items():
            self.assertEqual(check_client_elf.is_old_enough(version), expected, version)

    def test_dynamic_thread_locals_are_found(self):
        self.assertIn("DTPMOD64", self.problems("__thread int x; int* f(void) { return &x; }"))

    def test_text_relocations_are_found(self):
        source = "extern char x[]; __attribute__((section(\".text\"))) char* const p = x; char x[4];"
        self.assertIn("text relocations", self.problems(source, "-w", "-Wl,-z,notext"))

    def test_memory_to_write_and_execute_is_found(self):
        self.assertIn("writable and executable", self.problems("int x = 1; void f(void) { x = 2; }", "-Wl,-N"))

    def test_too_many_constructors_are_found(self):
        source = "".join(f"static int x{n}; __attribute__((constructor)) static void f{n}(void) {{ x{n}++; }}\n"
                         for n in range(3))
        self.assertIn("3 constructors", self.problems(source))

    def test_large_data_is_found(self):
        self.assertIn("bytes of code and data", self.problems("char x[200000] = {1};"))


if __name__ == "__main__":
    unittest.main()
