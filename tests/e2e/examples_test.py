"""The programs of examples/, each against what it knows about itself."""

import json
import os
import re
import unittest

from profile_run import run

EXAMPLES = os.environ["EXAMPLES"]
EVERYTHING = ["-i", "1", "--all-heaps"]


def example(name):
    """Path of a built example; without it the test is skipped."""
    path = os.path.join(EXAMPLES, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{name} was not built: its library or toolchain is missing")
    return path


def numbers(result):
    """{word: number} of the program's output."""
    return {word: int(number) for word, number in re.findall(r"(\w+) (\d+)", result.stdout)}


class Examples(unittest.TestCase):
    def profile(self, command, options=EVERYTHING, env=None):
        result = run(command, options, env)
        self.assertEqual(result.exit_code, 0, result.stderr)
        return result

    def test_an_arena_shows_its_blocks_and_malloc_not_its_chunks(self):
        result = self.profile([example("arena")])
        arena = result.heap("com.example.arena")
        self.assertEqual(arena.total("space"), numbers(result)["live"])
        self.assertEqual(arena.of("parse_headers")["alloc_objects"], 100 * 200)
        self.assertEqual(arena.of("read_body")["space"], 2 * 5000)
        malloc = [p for p in result.pprofs if p.heap == "libc.malloc"]
        self.assertEqual(sum(p.of("take_chunk")["alloc_space"] for p in malloc), 0)

    def test_the_estimate_of_an_arena_is_near_the_truth(self):
        result = self.profile([example("arena"), "5000"], ["--all-heaps"])
        self.assertAlmostEqual(result.heap("com.example.arena").of("parse_headers")["alloc_objects"] / 1e6, 1, delta=0.06)

    def test_sqlite_uses_what_it_says(self):
        result = self.profile([example("sqlite_heap")])
        sqlite = result.heap("org.sqlite")
        self.assertEqual(sqlite.total("space"), numbers(result)["live"])
        self.assertGreater(sqlite.total("alloc_space"), numbers(result)["peak"])
        malloc = [p for p in result.pprofs if p.heap == "libc.malloc"]
        self.assertEqual(sum(p.of("heap_malloc")["alloc_space"] + p.of("heap_realloc")["alloc_space"] for p in malloc), 0)

    def test_python_objects_are_where_their_labels_say(self):
        example("pymem_heap.so")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "pymem_demo.py")
        result = self.profile(["/usr/bin/python3", script], env={"PYTHONPATH": EXAMPLES})
        truth = json.loads(result.stdout)
        objects = result.heap("python.object").by_label("space")
        texts = (("part", "texts"),)
        self.assertEqual(objects[texts], truth["texts"])
        temporary = (("part", "temporary"),)
        self.assertEqual(objects[temporary], 0)
        allocated = result.heap("python.object").by_label("alloc_space")
        self.assertEqual(allocated[temporary], 1000 * 2033)
        large = (("part", "large"),)
        everywhere = sum(p.by_label("space").get(large, 0) for p in result.pprofs)
        self.assertLess(abs(everywhere - truth["large"]), 200)  # counted once, with its object

    def test_rust_reports_through_its_global_allocator(self):
        result = self.profile([example("rust_heap")])
        kept = [values for functions, values in result.heap("rust.global").stacks()
                if any("keeps_boxes" in name for name in functions)]
        self.assertEqual(sum(values["space"] for values in kept), numbers(result)["live"])

    def test_go_reports_through_cgo(self):
        result = self.profile([example("go_pool")])
        pool = result.heap("go.pool")
        self.assertEqual((pool.total("alloc_objects"), pool.total("space")), (1000, numbers(result)["live"]))
        malloc = [p for p in result.pprofs if p.heap == "libc.malloc"]
        self.assertEqual(sum(1 for p in malloc for _, values in p.stacks() if values["alloc_space"] == 1000 * 2048), 0)


if __name__ == "__main__":
    unittest.main()
