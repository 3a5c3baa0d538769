"""For tools/bench hprof: a large heap made by a program in Java, dumped and examined."""

import os
import subprocess
import tempfile
import time

JAVA = """
import java.util.*;
public class Heap {
  static class Customer { long id; String name; Address address; List<Order> orders = new ArrayList<>(); Customer next; }
  static class Address { String street; int zip; }
  static class Order { long id; Customer owner; Map<String, Object> attributes; Item[] items; }
  static class Item { String name; int count; long cents; }
  static class Tree { Tree left, right; int key; Object value; }
  static final Map<Long, Customer> CUSTOMERS = new HashMap<>();
  static final Map<String, byte[]> CACHE = new HashMap<>();
  static final LinkedList<Integer> LIST = new LinkedList<>();
  static final List<Object> REFERENCES = new ArrayList<>();
  static Tree tree = new Tree();
  static void insert(int key, Object value) {
    for (Tree at = tree; ; ) {
      Tree next = key < at.key ? at.left : at.right;
      if (next == null) {
        next = new Tree(); next.key = key; next.value = value;
        if (key < at.key) at.left = next; else at.right = next;
        return;
      }
      at = next;
    }
  }
  static Order order(Customer owner, long id, Random random) {
    Order order = new Order(); order.id = id; order.owner = owner;
    if (id % 2 == 0) {
      order.attributes = new HashMap<>();
      order.attributes.put("key" + id % 10, random.nextInt());
      order.attributes.put("note", new String("the same text"));
    }
    order.items = new Item[1 + random.nextInt(4)];
    for (int i = 0; i < order.items.length; i++) {
      order.items[i] = new Item(); order.items[i].name = "item " + random.nextInt(20000);
    }
    return order;
  }
  public static void main(String[] arguments) throws Exception {
    Random random = new Random(42);
    Customer previous = null;
    for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
      Customer customer = new Customer();
      customer.id = i; customer.name = "name " + i % 5000; customer.next = previous; previous = customer;
      customer.address = new Address(); customer.address.street = "street " + random.nextInt(100000);
      for (int left = random.nextInt(4); left > 0; left--) customer.orders.add(order(customer, i * 10L + left, random));
      CUSTOMERS.put((long) i, customer);
      if (i % 8 == 0) CACHE.put("block" + i, new byte[64 + random.nextInt(1024)]);
      if (i % 2 == 0) insert(random.nextInt(), customer);
      if (i % 100 == 0) REFERENCES.add(new java.lang.ref.WeakReference<>(customer));
      LIST.add(i);
    }
    System.out.println("ready");
    System.in.read();
  }
}
"""
OBJECTS_OF_A_CUSTOMER = 34.7


def make_dump(directory, objects):
    """Paths of a dump with about so many objects, and of the same as HotSpot compresses it."""
    with open(os.path.join(directory, "Heap.java"), "w") as file:
        file.write(JAVA)
    subprocess.run(["javac", "-d", directory, os.path.join(directory, "Heap.java")], check=True)
    dump = os.path.join(directory, "heap.hprof")
    with subprocess.Popen(["java", "-Xmx8g", "-XX:-UsePerfData", "-cp", directory, "Heap",
                           str(round(objects / OBJECTS_OF_A_CUSTOMER))],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        for arguments in ([dump], ["-gz=1", dump + ".gz"]):
            subprocess.run(["jcmd", str(process.pid), "GC.heap_dump", *arguments], check=True, stdout=subprocess.DEVNULL)
        process.kill()
    return dump, dump + ".gz"


def measure(tool, rounds, objects):
    with tempfile.TemporaryDirectory() as directory:
        dump, compressed = make_dump(directory, objects)
        size = os.path.getsize(dump)
        print(f"{size / 1e9:.2f} GB, {os.path.getsize(compressed) / 1e9:.2f} GB as gzip; file in memory; least of {rounds} rounds\n")
        print("| what | wall | CPU | GB/s | most memory beside the file |")
        print("|---|--:|--:|--:|--:|")
        for name, arguments, processors in [
                ("histogram", ["histogram", dump], "0"),
                ("references, dominators, retained sizes", ["dominators", dump], "0"),
                ("the same, and by class", ["histogram", "--retained", dump], "0"),
                ("histogram, of gzip", ["histogram", compressed], "0"),
                ("histogram, of gzip, two processors", ["histogram", compressed], "0,1")]:
            print_row(name, [tool, "hprof", *arguments], processors, rounds, size)
        index = dump + ".hpi"
        print_row("dominators, and the index is kept", [tool, "hprof", "dominators", "--keep-index", dump], "0", 1, size)
        for name, arguments in [("unreachable", ["unreachable", dump]), ("dominators", ["dominators", dump]), ("path", ["path", dump, "Heap$Order"]),
                                ("leaks", ["leaks", dump]), ("paths", ["paths", dump, "Heap$Order"]),
                                ("histogram --retained", ["histogram", "--retained", dump])]:
            print_row(f"{name}, from the index", [tool, "hprof", *arguments], "0", rounds, size)
        print(f"\nindex: {os.path.getsize(index) / 1e6:.0f} MB, {os.path.getsize(index) / size:.2f} of the dump")


def print_row(name, command, processors, rounds, size):
    runs = [run_once(command, processors) for _ in range(rounds)]
    wall, cpu, memory = (min(column) for column in zip(*runs))
    print(f"| {name} | {wall:.2f} s | {cpu:.2f} s | {size / 1e9 / cpu:.2f} | {memory / 2**20:.0f} MiB |")


def run_once(command, processors):
    """Wall and CPU seconds, peak of anonymous memory in bytes (the mapped file is not counted)."""
    begin = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", processors, *command], stdout=subprocess.DEVNULL)
    most = 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        most = max(most, anonymous_bytes(process.pid))
        time.sleep(0.01)
    if status != 0:
        raise SystemExit(f"cannot measure: {' '.join(command)} failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, most


def anonymous_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:")), 0)
    except OSError:
        return 0
