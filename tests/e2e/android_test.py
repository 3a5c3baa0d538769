"""heap_profile android against a stand-in for adb that records what it is asked and answers like a device."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import config_pb2
from google.protobuf import text_format
from profile_run import HEAP_PROFILE, Pprof, program, run
from service_run import wait_for

# The device: perfetto runs until it is interrupted, or for two questions about it.
ADB = """#!{python}
import json, os, signal, sys
home = os.environ["FAKE_DEVICE"]
with open(os.path.join(home, "log"), "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
command = sys.argv[-1]
stopped = os.path.join(home, "stopped")
if command == "getprop ro.build.version.sdk":
    print(os.environ.get("FAKE_SDK", "33"))
elif command == "getenforce":
    print("Enforcing")
elif sys.argv[1] == "exec-out":
    print(os.environ.get("FAKE_PID", "4711"))
elif command.startswith("kill -INT"):
    if "FAKE_FAILS" in os.environ:
        sys.exit(1)
    open(stopped, "w").close()
elif command.startswith("[ -d /proc/"):
    if "FAKE_HANGS" in os.environ:
        signal.pause()
    if "FAKE_FAILS" in os.environ:
        sys.exit(1)
    ends = int(os.environ.get("FAKE_ENDS", "1000000"))
    with open(os.path.join(home, "log")) as log:
        asked = sum("[ -d /proc/" in line for line in log)
    print("gone" if os.path.exists(stopped) or asked >= ends else "running")
elif sys.argv[1] == "pull":
    if "FAKE_STUCK" in os.environ:
        signal.pause()
    if "FAKE_TRACE" in os.environ:
        with open(os.environ["FAKE_TRACE"], "rb") as source, open(sys.argv[3], "wb") as file:
            file.write(source.read())
    else:
        with open(sys.argv[3], "w") as file:
            file.write("a trace")
"""


def signals_pending(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("ShdPnd")).split()[1], 16)


class Android(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        path = os.path.join(self.home.name, "adb")
        with open(path, "w") as file:
            file.write(ADB.format(python=sys.executable))
        os.chmod(path, stat.S_IRWXU)
        self.out = os.path.join(self.home.name, "out")

    def start(self, *options, **env):
        return subprocess.Popen(
            [HEAP_PROFILE, "android", "-o", self.out, *options], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PATH": self.home.name + ":/usr/bin:/bin", "FAKE_DEVICE": self.home.name, **env})

    def commands(self):
        with open(os.path.join(self.home.name, "log")) as log:
            return [json.loads(line) for line in log]

    def config(self):
        script = next(c for c in self.commands() if c[0] == "exec-out")[1]
        text = subprocess.run(["sh", "-c", script.split("; echo", 1)[0] + "; printf %s \"$CFG\""], capture_output=True,
                              text=True, check=True).stdout
        return text_format.Parse(text, config_pb2.TraceConfig())

    def test_the_sequence_of_commands(self):
        process = self.start("-n", "com.example.app", "-d", "10", "--no-report", FAKE_ENDS="1")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        pid = process.pid
        path = f"/data/misc/perfetto-traces/profile-{pid}"
        commands = self.commands()
        self.assertEqual(commands[0], ["shell", "getprop ro.build.version.sdk"])
        self.assertEqual(commands[1][0], "exec-out")
        self.assertTrue(commands[1][1].endswith(f"| perfetto --txt -c - -o {path} -d"))
        self.assertEqual(commands[2:], [["shell", "[ -d /proc/4711 ] && echo running || echo gone"],
                                        ["pull", path, self.out + "/raw-trace"],
                                        ["shell", f"rm -f {path}"]])
        self.assertIn("Profiling active", errors)
        self.assertTrue(os.path.exists(os.path.join(self.out, "raw-trace")))

    def test_the_options_arrive(self):
        self.start("-n", "it's,b", "-i", "77", "-c", "500", "--shmem-size", "8192", "--no-block-client", "--dump-at-max",
                   "-d", "1234", FAKE_ENDS="1").communicate(timeout=60)
        config = self.config()
        heapprofd = config.data_sources[0].config.heapprofd_config
        self.assertEqual(list(heapprofd.process_cmdline), ["it's", "b"])
        self.assertEqual((heapprofd.sampling_interval_bytes, heapprofd.shmem_size_bytes), (77, 8192))
        self.assertEqual(heapprofd.continuous_dump_config.dump_interval_ms, 500)
        self.assertTrue(heapprofd.dump_at_max)
        self.assertFalse(heapprofd.block_client)
        self.assertEqual(config.duration_ms, 1234)
        self.assertEqual(config.data_sources[1].config.name, "android.packages_list")

    def test_no_versions_leaves_the_packages_out(self):
        self.start("-n", "a", "--no-versions", FAKE_ENDS="1").communicate(timeout=60)
        self.assertEqual(len(self.config().data_sources), 1)

    def test_what_only_this_machine_understands_is_not_sent(self):
        process = self.start("-n", "a", "--malloc-info", "--no-children", "--disable-fork-teardown", FAKE_ENDS="1")
        _, errors = process.communicate(timeout=60)
        heapprofd = self.config().data_sources[0].config.heapprofd_config
        self.assertFalse(heapprofd.malloc_info or heapprofd.no_children)
        self.assertTrue(heapprofd.disable_fork_teardown)
        notes = [line for line in errors.splitlines() if "note:" in line and "on a device" in line]
        self.assertEqual([line.split()[2] for line in notes], ["--malloc-info", "--no-children"], errors)

    def test_the_printed_configuration_is_the_one_that_is_sent(self):
        options = ["-n", "a", "-i", "99", "--disable-fork-teardown"]
        printed = subprocess.run([HEAP_PROFILE, "android", "--print-config", *options], capture_output=True, text=True,
                                 check=True).stdout
        self.start(*options, FAKE_ENDS="1").communicate(timeout=60)
        self.assertEqual(text_format.Parse(printed, config_pb2.TraceConfig()), self.config())

    def test_profiles_lie_beside_the_trace_and_are_for_their_owner_only(self):
        with tempfile.TemporaryDirectory() as home:
            result = run([program("patient"), "1"], ["-i", "1"])
            trace = os.path.join(home, "trace")
            with open(trace, "wb") as file:
                file.write(result.trace_bytes)
            process = self.start("-n", "a", FAKE_ENDS="1", FAKE_TRACE=trace, PERFETTO_BINARY_PATH=home)
            _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("Wrote profiles to " + self.out, errors)
        modes = {name: os.stat(os.path.join(self.out, name)).st_mode & 0o777 for name in os.listdir(self.out)}
        (profile,) = [name for name in modes if name.startswith("heap_dump.1.")]
        self.assertEqual(set(modes), {"raw-trace", "symbols", "symbolized-trace", "report.html", profile})
        self.assertIn(f"report  {self.out}/report.html", errors.splitlines()[-1])
        self.assertEqual(set(modes.values()), {0o600})
        self.assertEqual(Pprof(os.path.join(self.out, profile)).of("kept_block")["space"], 1000 * 1000)
        raw, added, complete = (pathlib.Path(self.out, name).read_bytes()
                                for name in ("raw-trace", "symbols", "symbolized-trace"))
        self.assertEqual(complete, raw + added)

    def test_a_trace_that_makes_no_page_is_told_once_and_a_page_is_left_out_on_request(self):
        for options, said in (([], 1), (["--no-report"], 0)):
            with self.subTest(options=options):
                process = self.start("-n", "a", *options, FAKE_ENDS="1")
                _, errors = process.communicate(timeout=60)
                self.assertEqual(errors.count("cannot make the report: "), said, errors)
                self.assertIn(f"note: no pprof files could be made of {self.out}/raw-trace; it opens in", errors)
                shutil.rmtree(self.out)

    def test_the_converter_is_told_what_to_leave_out(self):
        converter = os.path.join(self.home.name, "traceconv")
        with open(converter, "w") as file:
            file.write(f"#!/bin/sh\necho \"$@\" > {self.home.name}/converter\n")
        os.chmod(converter, stat.S_IRWXU)
        for options, words in (([], []), (["--no-annotations"], ["--no-annotations"])):
            process = self.start("-n", "a", "--trace-to-text-binary", converter, *options, FAKE_ENDS="1")
            _, errors = process.communicate(timeout=60)
            self.assertNotIn("note:", errors)
            with open(os.path.join(self.home.name, "converter")) as file:
                self.assertEqual(file.read().split(), ["profile", "--output-dir", self.out + "/profiles", *words,
                                                       self.out + "/raw-trace"])
            shutil.rmtree(self.out)

    def test_ctrl_c_stops_the_device(self):
        process = self.start("-n", "a", "--no-report")
        log = os.path.join(self.home.name, "log")
        wait_for(lambda: os.path.exists(log) and "/proc/4711" in pathlib.Path(log).read_text(), "perfetto is not watched")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(["shell", "kill -INT 4711"], self.commands())
        self.assertIn("Waiting for profiler shutdown", errors)

    def test_the_device_is_asked_once_a_second(self):
        begin = time.monotonic()
        process = self.start("-n", "a", "--no-report", FAKE_ENDS="4")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertGreaterEqual(time.monotonic() - begin, 4)

    def was_told(self, words):
        return os.path.exists(os.path.join(self.home.name, "log")) and any(words in c[-1] for c in self.commands())

    def give_up(self, **env):
        """Two interrupts, the second when the first has been heard."""
        process = self.start("-n", "a", **env)
        wait_for(lambda: self.was_told("/proc/4711"), "perfetto is not watched")
        process.send_signal(signal.SIGINT)
        if "FAKE_FAILS" in env:
            wait_for(lambda: self.was_told("kill -INT"), "the device was not told")
        else:
            wait_for(lambda: not os.path.exists(f"/proc/{process.pid}") or signals_pending(process.pid) == 0, "not heard")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("cannot stop the recording on the device: adb did not pass it on; it ends with its duration, and adb "
                      f"pull /data/misc/perfetto-traces/profile-{process.pid} fetches it then", errors)

    def test_an_adb_that_fails_keeps_nobody_from_leaving(self):
        self.give_up(FAKE_FAILS="1")

    def test_an_adb_that_hangs_keeps_nobody_from_leaving(self):
        self.give_up(FAKE_HANGS="1")

    def test_a_trace_that_does_not_come_can_be_left_there(self):
        process = self.start("-n", "a", FAKE_ENDS="1", FAKE_STUCK="1")
        wait_for(lambda: self.was_told("raw-trace"), "nothing is fetched")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("cannot fetch the trace: interrupted; adb pull /data/misc/perfetto-traces/profile-"
                      f"{process.pid} does it by hand", errors)

    def test_selinux_is_restored(self):
        self.start("-n", "a", "--disable-selinux", FAKE_ENDS="1").communicate(timeout=60)
        shell = [c[1] for c in self.commands() if c[0] == "shell"]
        self.assertLess(shell.index("su root setenforce 0"), shell.index("su root setenforce 1"))

    def test_simpleperf_watches_heapprofd(self):
        self.start("-n", "a", "--simpleperf", FAKE_ENDS="1").communicate(timeout=60)
        self.assertTrue(any("simpleperf record" in c[-1] for c in self.commands()))
        self.assertIn(["pull", "/data/local/tmp/heapprofd_profile", self.out], self.commands())

    def test_names_that_cannot_be_looked_up_are_left_out(self):
        _, errors = self.start("-n", "a", FAKE_ENDS="1", PERFETTO_BINARY_PATH=self.home.name).communicate(timeout=60)
        self.assertIn("note: traceconv symbolize has failed; going on without symbols", errors)

    def test_old_devices_keep_their_file(self):
        self.start("-n", "a", FAKE_ENDS="1", FAKE_SDK="29").communicate(timeout=60)
        self.assertFalse(any(c[-1].startswith("rm ") for c in self.commands()))

    def test_a_device_that_refuses_is_reported(self):
        process = self.start("-n", "a", FAKE_PID="permission denied")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("cannot start perfetto on the device: permission denied", errors)

    def test_a_device_that_is_not_there_is_reported(self):
        process = self.start("-n", "a", FAKE_SDK="error: no devices/emulators found")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn('cannot reach a device: adb answered "error: no devices/emulators found"; connect one', errors)

    def test_a_trace_that_cannot_be_fetched_is_reported(self):
        process = self.start("-n", "a", FAKE_ENDS="1", FAKE_TRACE="/nonexistent")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("cannot pull the trace from the device", errors)

    def test_without_adb_its_package_is_named(self):
        process = subprocess.run([HEAP_PROFILE, "android", "-o", self.out, "-n", "a"], capture_output=True, text=True,
                                 env={**os.environ, "PATH": "/nonexistent"})
        self.assertEqual(process.returncode, 1)
        self.assertIn("apt-get install adb", process.stderr)


if __name__ == "__main__":
    unittest.main()
