"""Functions of just-in-time compilers, by what these write for perf."""

import os
import shutil
import subprocess
import tempfile
import unittest

from profile_run import run

SCRIPT = """
function leafAllocate(n) { return Buffer.alloc(n); }
function middleCaller(list, n) { for (let i = 0; i < 50; i++) list.push(leafAllocate(n)); }
function outerCaller() {
  const list = [];
  for (let i = 0; i < 400; i++) { middleCaller(list, 20000); if (list.length > 2000) list.length = 0; }
  return list.length;
}
let sum = 0;
for (let k = 0; k < 4; k++) sum += outerCaller();
console.log(sum);
"""
JAVA = """
import java.util.zip.Deflater;
public class Alloc {
  static int leafDeflate(byte[] data) {
    Deflater deflater = new Deflater();
    deflater.setInput(data);
    deflater.finish();
    int n = deflater.deflate(new byte[1000]);
    deflater.end();
    return n;
  }
  static int middleCaller(byte[] data) { int n = 0; for (int i = 0; i < 20; i++) n += leafDeflate(data); return n; }
  public static void main(String[] arguments) {
    int n = 0;
    for (int i = 0; i < 500; i++) n += middleCaller(new byte[2000]);
    System.out.println(n);
  }
}
"""


def bytes_under(pprof, *functions):
    """Bytes of stacks with all of these functions, the later ones called by the earlier ones."""
    total = 0
    for stack, values in pprof.stacks():
        outermost_first = iter(reversed(stack))
        if all(any(function in name for name in outermost_first) for function in functions):
            total += values["alloc_space"]
    return total


class Jit(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    @unittest.skipUnless(shutil.which("node"), "no node here")
    def test_node_with_a_perf_map(self):
        script = self.write("alloc.js", SCRIPT)
        result = run(["env", "-C", self.directory, "node", "--perf-basic-prof", script])
        self.assertEqual(result.exit_code, 0, result.stderr)
        # The first calls are interpreted, in frames that have the interpreter's name.
        self.assertGreater(bytes_under(result.main, "main", "middleCaller", "leafAllocate"), 20_000_000)

    @unittest.skipUnless(shutil.which("node"), "no node here")
    def test_node_with_a_jitdump(self):
        # The file is written to the working directory.
        result = run(["env", "-C", self.directory, "node", "--perf-prof", self.write("alloc.js", SCRIPT)])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(bytes_under(result.main, "main", "middleCaller", "leafAllocate"), 20_000_000)

    @unittest.skipUnless(shutil.which("node"), "no node here")
    def test_without_either_the_summary_says_what_to_do(self):
        result = run(["node", self.write("alloc.js", SCRIPT)])
        self.assertIn("code made at run time", result.stderr)
        self.assertIn("--perf-basic-prof", result.stderr)

    @unittest.skipUnless(shutil.which("javac"), "no javac here")
    def test_java_with_a_perf_map(self):
        subprocess.run(["javac", "-d", self.directory, self.write("Alloc.java", JAVA)], check=True)
        result = run(["java", "-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit",
                      "-cp", self.directory, "Alloc"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(bytes_under(result.main, "JavaMain", "Alloc.leafDeflate", "Deflater.init"), 20_000_000)

    @unittest.skipUnless(shutil.which("javac"), "no javac here")
    def test_java_names_of_a_mapping_file(self):
        subprocess.run(["javac", "-d", self.directory, self.write("Alloc.java", JAVA)], check=True)
        mapping = self.write("mapping.txt", "com.example.Store -> Alloc:\n    int read(byte[]) -> leafDeflate\n")
        result = run(["java", "-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit",
                      "-cp", self.directory, "Alloc"], env={"PERFETTO_PROGUARD_MAP": mapping})
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(bytes_under(result.main, "JavaMain", "com.example.Store.read", "Deflater.init"), 20_000_000)


if __name__ == "__main__":
    unittest.main()
