"""stats, diff and leaks of files that were made here: what they say where a file does not tell all."""

import gzip
import json
import os
import subprocess
import tempfile
import unittest

import pprof_pb2
import trace_pb2
from profile_run import HEAP_PROFILE


def trace_of(*heaps, pid=7):
    """A trace of one process. `heaps`: (name, {function: (count, bytes, freed count, freed bytes)}, other fields)."""
    trace = trace_pb2.Trace()
    tables = trace.packet.add(trusted_packet_sequence_id=2, sequence_flags=1).interned_data
    for table in (tables.build_ids, tables.mapping_paths, tables.function_names):
        table.add(iid=0, str=b"")
    tables.mapping_paths.add(iid=1, str=b"demo")
    tables.mappings.add(iid=2, build_id=0, path_string_ids=[1], start=0x1000, end=0x90000)
    packet = trace.packet.add(trusted_packet_sequence_id=2).profile_packet
    packet.index = 0
    iids = {}
    for name, functions, fields in heaps:
        dump = packet.process_dumps.add(pid=pid, heap_name=name, timestamp=1100, **fields)
        for function, (count, size, freed_count, freed) in functions.items():
            if function not in iids:
                iid = iids[function] = 10 + len(iids)
                tables.function_names.add(iid=iid, str=function.encode())
                tables.frames.add(iid=iid, function_name_id=iid, mapping_id=2, rel_pc=0x100 * iid)
                tables.callstacks.add(iid=iid, frame_ids=[iid])
            dump.samples.add(callstack_id=iids[function], alloc_count=count, self_allocated=size, free_count=freed_count,
                             self_freed=freed)
    return trace.SerializeToString()


class FilesTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name

    def file(self, name, content):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def run_tool(self, *arguments, code=0):
        result = subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def json(self, *arguments, code=0):
        return json.loads(self.run_tool(*arguments, "--json", code=code).stdout)


class HeapsOfTwoFiles(FilesTest):
    EXACT = {"sampling_interval_bytes": 1, "orig_sampling_interval_bytes": 1}

    def heaps(self, name, **sizes):
        return self.file(name, trace_of(*((heap.replace("_", "."), {"main": (1, size, 0, 0)}, self.EXACT)
                                          for heap, size in sizes.items())))

    def test_the_largest_of_those_that_both_have_is_compared(self):
        a = self.heaps("a", com_example_arena=9000, libc_malloc=500, pool=300)
        b = self.heaps("b", libc_malloc=700, pool=8000)
        diff = self.json("diff", a, b)
        self.assertEqual([diff[side]["heap"] for side in "ab"], ["libc.malloc", "libc.malloc"])
        self.assertEqual(diff["live_bytes"]["change"], 200)
        self.assertEqual(self.json("diff", b, a)["a"]["heap"], "pool")

    def test_different_heaps_are_not_compared(self):
        a, b = self.heaps("a", com_example_arena=9000), self.heaps("b", libc_malloc=700, pool=30)
        result = self.run_tool("diff", "--fail-if", "live>+1%", a, b, code=4)
        self.assertIn("no heap of A (com.example.arena) has the name of one of B (libc.malloc, pool); record both with "
                      "--all-heaps, or name the same ones in --heaps", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_files_that_name_no_heap_are_compared_with_any(self):
        a, b = self.heaps("a", com_example_arena=9000), self.file("b.folded", b"main 100\n")
        self.assertEqual(self.json("diff", a, b)["live_bytes"]["change"], -8900)
        self.assertEqual(self.json("diff", b, a)["live_bytes"]["change"], 8900)


if __name__ == "__main__":
    unittest.main()
