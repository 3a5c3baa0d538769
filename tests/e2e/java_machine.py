"""A Java virtual machine with a program that leaks, for tests that look into its heap."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

# All virtual machines of this machine.
JAVAS = sorted({os.path.realpath(path) for path in [shutil.which("java") or "", *glob.glob("/usr/lib/jvm/*/bin/java")] if path})
HAS_JAVA = shutil.which("javac") is not None and shutil.which("jcmd") is not None
LETTERS = {"Z": "boolean", "C": "char", "F": "float", "D": "double", "B": "byte", "S": "short", "I": "int", "J": "long"}
# Its argument multiplies what it leaks. Lines that it reads: "echo" is answered, "hog" makes it run out of memory.
LEAKY = """
import java.io.*;
import java.util.*;
public class Leaky {
  static final List<byte[]> LEAK = new ArrayList<>();
  static class Entry { Entry next; String text; Entry(Entry n, String t) { next = n; text = t; } }
  static Entry chain;
  public static void main(String[] arguments) throws Exception {
    int times = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1;
    for (int i = 0; i < 1000 * times; i++) LEAK.add(new byte[1000]);
    for (int i = 0; i < 5000 * times; i++) chain = new Entry(chain, "entry " + i);
    System.out.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      while (line.equals("hog")) LEAK.add(new byte[1 << 20]);
      System.gc();
      System.out.println(line);
    }
  }
}
"""


def java_name(name):
    """As the language writes what the VM prints."""
    element = name.lstrip("[")
    dimensions = len(name) - len(element)
    if dimensions > 0:
        element = LETTERS.get(element) or element[1:-1]
    return element + "[]" * dimensions


def version_of(java):
    """17, of the virtual machine at this path."""
    with open(os.path.join(os.path.dirname(os.path.dirname(java)), "release")) as file:
        numbers = re.search(r'JAVA_VERSION="([^"]*)"', file.read())[1].split(".")
    return int(numbers[1] if numbers[0] == "1" else numbers[0])


def jcmd(process, *command):
    return subprocess.run(["jcmd", str(process.pid), *command], check=True, capture_output=True, text=True, timeout=120).stdout


def machines_histogram(process):
    """{class: (objects, bytes)}, as the virtual machine counts them."""
    rows = {}
    for line in jcmd(process, "GC.class_histogram").splitlines():
        if match := re.match(r"\s*\d+:\s+(\d+)\s+(\d+)\s+(\S+)", line):
            name = java_name(match[3])
            known = rows.get(name, (0, 0))
            rows[name] = (known[0] + int(match[1]), known[1] + int(match[2]))
    return rows


def answers(process):
    """Whether it still does what it is for, garbage collection too."""
    process.stdin.write("echo\n")
    process.stdin.flush()
    return process.stdout.readline() == "echo\n"


@unittest.skipUnless(HAS_JAVA, "no Java development kit here")
class WithMachine(unittest.TestCase):
    """`classes` is a directory with the compiled program, `directory` one for the test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.classes = tempfile.mkdtemp(prefix="leaky_")
        cls.addClassCleanup(shutil.rmtree, cls.classes)
        os.chmod(cls.classes, 0o755)
        source = os.path.join(cls.classes, "Leaky.java")
        with open(source, "w") as file:
            file.write(LEAKY)
        subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", cls.classes, source], check=True, timeout=120)

    def setUp(self):
        super().setUp()
        self.directory = tempfile.mkdtemp(prefix="java_test_")
        self.addCleanup(shutil.rmtree, self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, *flags, times=1, java="java", wrapper=(), **kwargs):
        process = subprocess.Popen([*wrapper, java, "-XX:-UsePerfData", f"-Xmx{64 + 2 * times}m", *flags, "-cp", self.classes,
                                    "Leaky", str(times)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process
