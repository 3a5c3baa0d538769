"""A Java virtual machine with a program that leaks, for tests that look into its heap."""

import atexit
import contextlib
import functools
import glob
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

from running_process import DEADLINE_S
from with_directory import WithDirectory

# All virtual machines of this machine.
JAVAS = sorted({os.path.realpath(path) for path in [shutil.which("java") or "", *glob.glob("/usr/lib/jvm/*/bin/java")] if path})
HAS_JAVA = shutil.which("javac") is not None and shutil.which("jcmd") is not None
LETTERS = {"Z": "boolean", "C": "char", "F": "float", "D": "double", "B": "byte", "S": "short", "I": "int", "J": "long"}
# Its argument multiplies what it leaks. Lines that it reads: "echo" is answered, "more" leaks 1 MB, "hog" makes it run out of memory.
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
      for (int i = 0; i < 1000 && line.equals("more"); i++) LEAK.add(new byte[1000]);
      System.gc();
      System.out.println(line);
    }
  }
}
"""

# One leak of each kind; which one is its first argument.
LEAKS = """
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
public class Leaks {
  static final Map<Integer, byte[]> REGISTRY = new TreeMap<>();
  static class Cache { final Map<String, Object> entries = new LinkedHashMap<>(); }
  static final Cache SINGLETON = new Cache();
  interface Listener { void happened(); }
  static class Button { final List<Listener> listeners = new CopyOnWriteArrayList<>(); }
  static class Window { final byte[] pixels = new byte[100_000]; void open(Button b) { b.listeners.add(() -> pixels[0]++); } }
  static final ThreadLocal<byte[]> BUFFER = new ThreadLocal<>();
  static class Pool { final List<ByteBuffer> buffers = new ArrayList<>(); }
  static final Pool POOL = new Pool();
  // The first update is overtaken by another one in its midst, so that it makes a cell of its own.
  static boolean isOvertaken;
  static long add(long sum, long value) {
    if (!isOvertaken) { isOvertaken = true; COUNTER.accumulate(1); }
    return sum + value;
  }
  static final java.util.concurrent.atomic.LongAccumulator COUNTER = new java.util.concurrent.atomic.LongAccumulator(Leaks::add, 0);
  static final List<Object> DEPLOYED = new ArrayList<>();
  static class Resource {
    final byte[] data = new byte[100_000];
    protected void finalize() throws Throwable { Thread.sleep(Long.MAX_VALUE); }
  }
  public static class Plugin { static final byte[] STATE = new byte[100_000]; }
  static class PluginLoader extends ClassLoader {
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!name.equals("Leaks$Plugin")) return super.loadClass(name, resolve);
      try {
        byte[] bytes = Files.readAllBytes(Paths.get(System.getProperty("java.class.path"), name + ".class"));
        return defineClass(name, bytes, 0, bytes.length);
      } catch (java.io.IOException e) { throw new ClassNotFoundException(name); }
    }
  }
  public static void main(String[] arguments) throws Exception {
    Button button = new Button();
    ExecutorService pool = Executors.newFixedThreadPool(100);
    CountDownLatch all = new CountDownLatch(100);
    for (int i = 0; i < 100; i++) {
      String text = "session " + i;
      switch (arguments[0]) {
        case "map": REGISTRY.put(i, new byte[100_000]); break;
        case "cache": for (int k = 0; k < 100; k++) SINGLETON.entries.put(text + k, new StringBuilder(1000)); break;
        case "listeners": new Window().open(button); break;
        case "threads": pool.submit(() -> { BUFFER.set(new byte[100_000]); all.countDown(); all.await(); return 0; }); break;
        case "buffers":
          ByteBuffer buffer = ByteBuffer.allocateDirect(100_000);
          for (int k = 0; k < buffer.capacity(); k += 1000) buffer.put(k, (byte) 1);
          POOL.buffers.add(buffer);
          POOL.buffers.add(buffer.slice());
          break;
        case "loaders":
          DEPLOYED.add(new PluginLoader().loadClass("Leaks$Plugin").getDeclaredConstructor().newInstance());
          break;
        case "context":
          ClassLoader loader = new PluginLoader();
          Class.forName("Leaks$Plugin", true, loader);
          Thread worker = new Thread(() -> { try { Thread.sleep(Long.MAX_VALUE); } catch (InterruptedException e) { } }, "plugin-" + i);
          worker.setDaemon(true);
          worker.setContextClassLoader(loader);
          worker.start();
          break;
        case "finalizers": new Resource(); break;
        case "contended":
          COUNTER.accumulate(1);
          ForkJoinPool.commonPool().submit(() -> 0).get();
          break;
      }
    }
    if (arguments[0].equals("threads")) all.await();
    System.out.println("ready");
    System.in.read();
    System.out.println(button);
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


def next_line(process):
    """Its next line; empty: it has ended, or was, because none came for long: it stands still."""
    late = threading.Timer(DEADLINE_S, process.kill)
    late.start()
    try:
        return process.stdout.readline()
    finally:
        late.cancel()


def remove_socket(pid):
    """A virtual machine that is killed leaves it to the next process of this number, which cannot remove another user's."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"/tmp/.java_pid{pid}")


def answers(process):
    """Whether it still does what it is for, garbage collection too."""
    process.stdin.write("echo\n")
    process.stdin.flush()
    return next_line(process) == "echo\n"


@functools.cache
def compiled():
    """A directory with the classes of all programs, until the tests end."""
    directory = tempfile.mkdtemp(prefix="leaky_")
    atexit.register(shutil.rmtree, directory)
    os.chmod(directory, 0o755)
    sources = []
    for name, text in (("Leaky", LEAKY), ("Leaks", LEAKS)):
        sources.append(os.path.join(directory, name + ".java"))
        with open(sources[-1], "w") as file:
            file.write(text)
    subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", directory, *sources], check=True, timeout=240)
    return directory


@unittest.skipUnless(HAS_JAVA, "no Java development kit here")
class WithMachine(WithDirectory):
    """`classes` is a directory with the compiled programs, `directory` one for the test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.classes = compiled()

    def start(self, *flags, times=1, program=None, java="java", wrapper=(), **kwargs):
        """Leaky, or the `program` with its arguments."""
        process = subprocess.Popen([*wrapper, java, "-XX:-UsePerfData", f"-Xmx{64 + 2 * times}m", *flags, "-cp", self.classes,
                                    *(program or ["Leaky", str(times)])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
        self.addCleanup(lambda: (process.kill(), process.communicate(), remove_socket(process.pid)))
        self.assertEqual(next_line(process), "ready\n")
        remove_socket(process.pid)  # of a former process: nobody has asked this one yet
        return process
