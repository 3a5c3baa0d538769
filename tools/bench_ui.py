"""What reports cost to make, and how they behave in a browser: tools/bench ui."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "e2e"))
from browser import Browser, Page  # noqa: E402: it is the tests' own

MIB_OF_STACKS = 18  # of make_trace: 1e5 stacks
WORDS = ("alloc Vector push_back Parser Session decode Frame Json Cache Request Handler Tree insert resize render Shader "
         "compile Query").split()

# Zooms into a deep box and out again while scrolling, and says what drawing cost.
FRAMES = """(async () => {
  const app = heapReport, { flame, tree } = app;
  let target = 0, largest = 0;
  for (let node = 0; node < tree.count; node += 97)
    if (tree.depths[node] > 20 && tree.totals[node] > largest) { largest = tree.totals[node]; target = node; }
  const path = tree.pathOf(target), times = [];
  let rectangles = 0;
  for (let i = 0; i < 120; ++i) {
    flame.zoom = path[Math.min(path.length - 1, i % 40)] || 0;
    flame.element.scrollTop = i * 12;
    const begin = performance.now();
    flame.draw();
    times.push(performance.now() - begin);
    rectangles = Math.max(rectangles, flame.rectangles);
    await new Promise((done) => requestAnimationFrame(done));
  }
  times.sort((a, b) => a - b);
  return { median: times[60], p95: times[114], rectangles };
})()"""
STEP = "(() => {{ const begin = performance.now(); heapReport.set({0}); return performance.now() - begin; }})()"


def write_folded(path, nodes, seed=1):
    """A tree with about that many nodes: a stack leaves the one before it somewhere."""
    numbers = random.Random(1)
    names = [f"{numbers.choice(WORDS)}::{numbers.choice(WORDS)}_{i}(int, char const*)" for i in range(40_000)]
    numbers.seed(seed)
    with open(path, "w") as file:
        stack, made = [], 0
        while made < nodes:
            del stack[max(1, len(stack) - 1 - int(numbers.expovariate(0.3))):]
            for _ in range(numbers.randrange(1, 12)):
                if len(stack) < 110:
                    stack.append(names[int(numbers.random() ** 2 * len(names))])
                    made += 1
            file.write(";".join(stack) + f" {int(2 ** (numbers.random() * 20)) + 1}\n")


def cost(process):
    """CPU time (s) and peak memory (MiB) of a process, once it has ended."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run(command, rounds):
    """Least wall time and CPU time, and peak memory of a command."""
    walls, cpus, memory = [], [], 0
    for _ in range(rounds):
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        cpu, peak = cost(process)
        if process.returncode != 0:
            sys.exit(f"cannot measure: {command} has failed")
        walls.append(time.monotonic() - begin)
        cpus.append(cpu)
        memory = max(memory, peak)
    return min(walls), min(cpus), memory


def look(browser, page, rounds):
    paints, heaps, steps, frames = [], [], {}, None
    for _ in range(rounds):
        tab = Page(browser, 1500, 800)
        tab.open(page)
        paints.append(tab.evaluate("performance.getEntriesByName('painted')[0].startTime"))
        heaps.append(tab.evaluate("performance.memory.usedJSHeapSize") / 1e6)
        for name, change in (("flame graph", "{page: 'flame'}"), ("search", "{query: '/insert_1\\\\d*\\\\(/'}"),
                             ("other value", "{view: 'objects', query: ''}"), ("bottom-up", "{isInverted: true, view: 'space'}")):
            steps.setdefault(name, []).append(tab.evaluate(STEP.format(change)))
        tab.evaluate("heapReport.set({isInverted: false})")
        frames = tab.evaluate(FRAMES)
        if tab.complaints or len(tab.requests) != 1:
            sys.exit(f"cannot measure: the page complained or asked the network: {tab.complaints} {tab.requests}")
        tab.close()
    return min(paints), min(heaps), {name: min(times) for name, times in steps.items()}, frames


def compare(tool, browser, directory, rounds):
    """First paint of a report of two profiles of 1e5 stacks, with their differences."""
    files = [os.path.join(directory, f"{name}.folded") for name in "ab"]
    for seed, file in enumerate(files, 2):
        write_folded(file, 385_000, seed)  # about 1e5 stacks
    page = os.path.join(directory, "both.html")
    subprocess.run([tool, "report", "-q", "-o", page, *files], check=True)
    paints = []
    for _ in range(rounds):
        tab = Page(browser, 1500, 800)
        tab.open(page, "#page=compare")
        paints.append(tab.evaluate("performance.getEntriesByName('painted')[0].startTime"))
        tab.close()
    with open(files[0]) as stacks:
        return min(paints), sum(1 for _ in stacks)


def serve(tool, browser, trace, rounds):
    """Least wall time from the start of `view` to its first picture, and CPU time of the server until then."""
    walls, cpus = [], []
    for _ in range(rounds):
        begin = time.monotonic()
        server = subprocess.Popen([tool, "view", "--no-open", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        tab = Page(browser, 1500, 800)
        tab.open(server.stdout.readline().strip())
        walls.append(time.monotonic() - begin)
        tab.close()
        server.terminate()
        cpus.append(cost(server)[0])
        server.stdout.close()
    return min(walls), min(cpus)


def measure_goals(build, directory, browser, rounds):
    """Those of the goals that the table of reports does not have."""
    tool = os.path.join(build, "src", "cli", "heap_profile")
    trace = os.path.join(directory, "large")
    subprocess.run([os.path.join(build, "bench", "make_trace"), trace, "100"], check=True)
    read, _, _ = run(["cat", trace], rounds)
    query, query_cpu, _ = run([tool, "query", trace, "SELECT count(*) FROM heap_profile_allocation"], rounds)
    view, view_cpu = serve(tool, browser, trace, rounds)
    small, page = os.path.join(directory, "small.folded"), os.path.join(directory, "small.html")
    with open(small, "w") as file:
        file.write("main 1\n")
    subprocess.run([tool, "report", "-q", "-o", page, small], check=True)
    with open(page, "rb") as file:
        text = file.read()
    paint, stacks = compare(tool, browser, directory, rounds)
    print("\n| measured | |\n|---|--:|")
    print(f"| `view` of a trace of {os.path.getsize(trace) / 1e6:.0f} MB: start to first picture | {view:.2f} s, CPU of the server {view_cpu:.2f} s |")
    print(f"| the same opened by `query`; `cat` of it | {query:.2f} s, CPU {query_cpu:.2f} s; {read:.2f} s |")
    print(f"| two profiles of {stacks} stacks compared: first paint | {paint:.0f} ms |")
    print(f"| page without data; by gzip -9 | {len(text) / 1e3:.1f} kB; {len(gzip.compress(text, 9)) / 1e3:.1f} kB |")
    print(f"| `heap_profile -h` | {1e3 * run([tool, '-h'], 20)[0]:.1f} ms |")


def measure(build, rounds):
    tool = os.path.join(build, "src", "cli", "heap_profile")
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "raw-trace")
        subprocess.run([os.path.join(build, "bench", "make_trace"), trace, str(MIB_OF_STACKS)], check=True)
        sources = [("trace, 1e5 stacks", trace)]
        for count in (100_000, 1_000_000):
            sources.append((f"folded, {count:.0e} nodes".replace("e+0", "e"), os.path.join(directory, f"{count}.folded")))
            write_folded(sources[-1][1], count)
        browser = Browser()
        print("| report of | made in | CPU | memory | page | first paint | JS heap | draw (median, p95) | rectangles "
              "| search | other value | bottom-up |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name, source in sources:
            page = os.path.join(directory, "report.html")
            wall, cpu, memory = run([tool, "report", "-q", "-o", page, source], rounds)
            paint, heap, steps, frames = look(browser, page, rounds)
            print(f"| {name} | {wall:.2f} s | {cpu:.2f} s | {memory:.0f} MiB | {os.path.getsize(page) / 1e6:.2f} MB "
                  f"| {paint:.0f} ms | {heap:.0f} MB | {frames['median']:.1f}, {frames['p95']:.1f} ms "
                  f"| {frames['rectangles']} | {steps['search']:.0f} ms | {steps['other value']:.0f} ms "
                  f"| {steps['bottom-up']:.0f} ms |", flush=True)
        measure_goals(build, directory, browser, rounds)
        browser.close()
