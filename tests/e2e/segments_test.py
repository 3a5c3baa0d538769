"""Programs with several executable segments, each at another distance from its place in the file."""

import os
import shutil
import subprocess
import tempfile
import unittest

import trace_pb2
from profile_run import HEAP_PROFILE, Pprof, program, run
from running_process import MAY_ATTACH, Engine, Running
from service_run import Recording

PROGRAMS = ["segments", "segments_fixed"]
# Innermost first; each keeps 100 blocks per round.
STACKS = {
    ("usual_leaf", "hotter_above_usual", "hot_above_hotter", "main"): 100 * 1000,
    ("hot_leaf", "usual_above_hot", "hotter_above_both", "main"): 100 * 2000,
    ("hotter_leaf", "usual_above_hotter", "hot_above_both", "main"): 100 * 3000,
}
FUNCTIONS = {name for stack in STACKS for name in stack[:-1]}


def stacks_of(pprof):
    """Bytes that the program's own stacks have kept, up to main."""
    found = {}
    for functions, values in pprof.stacks():
        if values["space"] == 0 or not FUNCTIONS & set(functions):
            continue
        end = functions.index("main") + 1 if "main" in functions else len(functions)
        stack = tuple(functions[1:end])  # without malloc
        found[stack] = found.get(stack, 0) + values["space"]
    return found


def ranges_of(path):
    """ELF addresses of the functions: {name: range}."""
    lines = subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {f[3]: range(int(f[0], 16), int(f[0], 16) + int(f[1], 16)) for f in fields if len(f) == 4 and f[3] in FUNCTIONS}


class Segments(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def without_symbols(self, name):
        """A stripped copy, and a directory that has the symbols."""
        stripped = os.path.join(self.directory, name)
        subprocess.run(["strip", "-s", "-o", stripped, program(name)], check=True)
        symbols = os.path.join(self.directory, "symbols")
        os.makedirs(symbols, exist_ok=True)
        shutil.copy(program(name), symbols)
        return stripped, symbols

    def profile(self, trace, **env):
        """What traceconv makes of a trace."""
        path = os.path.join(self.directory, "trace")
        with open(path, "wb") as file:
            file.write(trace.SerializeToString())
        out = os.path.join(self.directory, "out")
        shutil.rmtree(out, ignore_errors=True)
        env = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.directory, "cache"), **env}
        subprocess.run([HEAP_PROFILE, "traceconv", "profile", "--no-annotations", "--output-dir", out, path], check=True,
                       capture_output=True, env=env)
        return Pprof(os.path.join(out, os.listdir(out)[0]))

    def test_stacks_are_whole_and_names_right(self):
        for name in PROGRAMS:
            result = run([program(name)], ["-i", "1"])
            self.assertEqual(stacks_of(result.main), STACKS, (name, result.stderr))
            self.assertNotIn("end early", result.stderr)

    @unittest.skipUnless(MAY_ATTACH, "attaching to every process is not allowed here")
    def test_so_they_are_in_a_process_that_runs_already(self):
        for name in PROGRAMS:
            with Running([program(name)], stdin=subprocess.PIPE) as target, Engine() as engine:
                recording = Recording(engine, ["-i", "1", "-p", str(target.pid)]).wait_active()
                target.process.stdin.write("x\n")
                target.process.stdin.flush()
                for _ in range(2):  # one for each character
                    self.assertEqual(target.process.stdout.readline(), "ready\n")
                recording.finish()
            twice = {stack: 2 * size for stack, size in STACKS.items()}
            self.assertEqual(stacks_of(recording.pprofs[0]), twice, (name, recording.stderr))

    def recorded_without_names(self, name):
        stripped, symbols = self.without_symbols(name)
        result = run([stripped], ["-i", "1"])
        self.assertEqual(stacks_of(result.main), {})
        trace = trace_pb2.Trace()
        trace.ParseFromString(result.trace_bytes)
        return result, trace, symbols

    def test_a_trace_has_elf_addresses(self):
        for name in PROGRAMS:
            _, trace, symbols = self.recorded_without_names(name)
            addresses = [frame.rel_pc for packet in trace.packet for frame in packet.interned_data.frames]
            for function, addresses_of_it in ranges_of(program(name)).items():
                self.assertTrue(any(address in addresses_of_it for address in addresses), (name, function))
            self.assertEqual(stacks_of(self.profile(trace, PERFETTO_BINARY_PATH=symbols)), STACKS, name)

    def test_a_trace_of_a_recorder_that_knows_one_bias_per_file_has_names(self):
        """Android's unwinder takes that of the first executable segment."""
        for name in PROGRAMS:
            _, trace, symbols = self.recorded_without_names(name)
            paths = {s.iid for packet in trace.packet for s in packet.interned_data.mapping_paths if s.str == name.encode()}
            mappings = [m for packet in trace.packet for m in packet.interned_data.mappings if m.path_string_ids[-1:] and
                        m.path_string_ids[-1] in paths]
            self.assertEqual(len({m.load_bias for m in mappings}), 3)
            first = min(m.load_bias for m in mappings)
            excess = {m.iid: m.load_bias - first for m in mappings}
            for packet in trace.packet:
                for frame in packet.interned_data.frames:
                    frame.rel_pc -= excess.get(frame.mapping_id, 0)
                for mapping in packet.interned_data.mappings:
                    mapping.load_bias -= excess.get(mapping.iid, 0)
            self.assertEqual(stacks_of(self.profile(trace, PERFETTO_BINARY_PATH=symbols)), STACKS, name)


if __name__ == "__main__":
    unittest.main()
