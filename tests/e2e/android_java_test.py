"""heap_profile java android and java_heap_dump, against a stand-in for adb that answers like devices of all ages."""

import json
import os
import re
import shlex
import signal
import subprocess
import unittest

import config_pb2
from fake_device import Device
from google.protobuf import text_format
from hprof_dump import head_and_tail, phone
from profile_run import HEAP_PROFILE, program, run
from service_run import wait_for
from with_directory import WithDirectory

JAVA_HEAP_DUMP = os.path.join(os.environ["COMPAT"], "java_heap_dump")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PATIENCE = 120
BASE = "/data/misc/heap-dump-tm1240861355-pid289.hprof"


class OnDevice(WithDirectory):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("temporary"))
        self.device = Device(self.directory)
        self.dump = self.write("phone.hprof", phone())

    def start(self, *options, command=(HEAP_PROFILE, "java", "android"), stdout=subprocess.PIPE, **env):
        env = self.device.environment(FAKE_DUMP=self.dump, TMPDIR=self.path("temporary"), **env)
        return subprocess.Popen([*command, *options], text=True, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                env=env)

    def run_to_end(self, *options, code=0, **more):
        process = self.start(*options, **more)
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, output + errors)
        self.assertEqual(os.listdir(self.path("temporary")), [])
        return output, errors

    def commands_that(self, begin):
        return [command[-1] for command in self.device.commands() if command[0] == "shell" and command[-1].startswith(begin)]

    def check_whole(self, output, options=()):
        expected = subprocess.run([HEAP_PROFILE, "hprof", "histogram", *options, self.dump], capture_output=True, text=True,
                                  check=True).stdout
        self.assertEqual([line for line in output.splitlines() if "com.example.Node" in line],
                         [line for line in expected.splitlines() if "com.example.Node" in line])
        self.assertIn("com.example.Node", output)


class ByActivityManager(OnDevice):
    def test_one_command_dumps_fetches_and_shows_and_leaves_nothing_there(self):
        output, errors = self.run_to_end("-n", "com.example.app")
        self.check_whole(output)
        self.assertRegex(errors, r"com\.example\.app on the device: a dump")
        (asked,) = self.commands_that("am ")
        self.assertRegex(asked, r"^am dumpheap -g 'com\.example\.app' /data/local/tmp/heap_profile-\w+/dump\.hprof 2>&1$")
        self.assertEqual(self.device.files(), [])

    def test_the_views_and_options_are_those_of_this_machine(self):
        output, _ = self.run_to_end("-p", "289", "histogram", "--retained", "--json", "--top", "0", "--all")
        self.assertIn("com.example.Node", [row["class"] for row in json.loads(output)["classes"]])
        self.assertRegex(self.commands_that("am ")[0], r"^am dumpheap '289' ")

    def test_a_dump_is_kept_as_it_came(self):
        kept = self.path("kept.hprof")
        _, errors = self.run_to_end("-n", "a", "--keep", kept)
        self.assertIn("which is in " + kept, errors)
        with open(kept, "rb") as file, open(self.dump, "rb") as dumped:
            self.assertEqual(file.read(), dumped.read())
        self.assertEqual(os.stat(kept).st_mode & 0o777, 0o600)

    def test_a_dump_that_grows_is_waited_for(self):
        output, _ = self.run_to_end("-n", "a", FAKE_SLOW="2")
        self.check_whole(output)
        self.assertGreater(len([c for c in self.device.commands() if c[0] == "pull"]), 1)  # parts looked whole
        self.assertEqual(self.device.files(), [])

    def test_a_dump_that_never_becomes_whole_is_given_up(self):
        self.dump = self.write("cut.hprof", phone()[:-9])
        output, errors = self.run_to_end("-n", "a", "--timeout", "5", code=1)
        self.assertIn("cannot take a heap dump of a on the device: nothing has come for 5.0 s (what is there is not whole: it "
                      "ends at byte", errors)
        self.assertIn("look what the device does, or wait longer with --timeout", errors)
        self.assertEqual((output, self.device.files()), ("", []))

    def test_a_device_that_cannot_collect_garbage_is_asked_without(self):
        output, errors = self.run_to_end("-n", "a", FAKE_NO_GC="1")
        self.check_whole(output)
        self.assertIn("am dumpheap of this device has no -g: garbage may be among the objects", errors)

    def test_a_device_that_takes_no_notice_of_options_gets_none(self):
        output, errors = self.run_to_end("-n", "a", FAKE_SDK="16")
        self.check_whole(output)
        self.assertIn("am dumpheap of this device has no -g: garbage may be among the objects", errors)
        self.assertRegex(self.commands_that("am ")[0], r"^am dumpheap 'a' ")

    def test_a_name_is_no_unknown_option(self):
        _, errors = self.run_to_end("-n", "my-game", code=1, FAKE_AM="Error: no process my-game")
        self.assertIn('am dumpheap answers "Error: no process my-game"', errors)
        self.assertEqual(len(self.commands_that("am ")), 1)

    def test_what_the_device_refuses_is_told(self):
        for said, expected in (
                ("java.lang.SecurityException: Process not debuggable: ProcessRecord{1}\n\tat x", "SecurityException: Process not "
                 "debuggable: ProcessRecord{1}\"; it dumps programs that can be debugged"),
                ("Error: Unable to open file\x1b[31m", "Error: Unable to open file?[31m"),
                ("HEAP DUMP FAILED on process a", "HEAP DUMP FAILED on process a")):
            with self.subTest(said=said):
                _, errors = self.run_to_end("-n", "a", code=1, FAKE_AM=said)
                self.assertIn("cannot take a heap dump of a on the device: am dumpheap answers \"", errors)
                self.assertIn(expected, errors)
                self.assertEqual(self.device.files(), [])

    def test_a_device_without_room_is_told(self):
        _, errors = self.run_to_end("-n", "a", code=1, FAKE_SAYS=json.dumps({"umask": "mkdir: Read-only file system"}))
        self.assertIn("the device creates no directory for it: mkdir: Read-only file system", errors)
        self.assertEqual(self.commands_that("rm"), [])

    def test_a_dump_that_cannot_be_fetched_is_told(self):
        _, errors = self.run_to_end("-n", "a", code=1, FAKE_SAYS=json.dumps({"ls": "total 8\n-rw 1 a b 7 dump.hprof", "am": ""}))
        self.assertRegex(errors, r"adb pull /data/local/tmp/heap_profile-\w+/dump.hprof fails: adb: error: failed to stat")
        self.assertEqual(self.device.files(), [])

    def test_ctrl_c_leaves_nothing_behind(self):
        for hangs in ("getprop", "umask", "am ", "ls ", "pull"):
            with self.subTest(hangs=hangs):
                process = self.start("-n", "a", FAKE_HANGS=hangs)
                wait_for(lambda: self.device.was_told(hangs), "not asked")
                process.send_signal(signal.SIGINT)
                output, errors = process.communicate(timeout=PATIENCE)
                self.assertEqual((process.returncode, output), (1, ""), errors)
                self.assertIn("cannot take a heap dump of a on the device: interrupted", errors)
                self.assertNotIn("may remain", errors)
                self.assertEqual(self.device.files(), [])
                self.assertEqual(os.listdir(self.path("temporary")), [])
                os.unlink(self.path("log"))

    def test_ctrl_c_before_the_device_says_that_it_has_a_directory_leaves_none(self):
        process = self.start("-n", "a", FAKE_STALLS="umask")
        wait_for(self.device.files, "no directory")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        self.assertIn("cannot take a heap dump of a on the device: interrupted", errors)
        self.assertNotIn("may remain", errors)
        self.assertEqual(self.device.files(), [])

    def test_ctrl_c_while_the_dump_is_read_leaves_nothing_behind(self):
        output, errors = self.run_to_end("-n", "a", code=1, FAKE_INTERRUPTS="1")
        self.assertIn("cannot take a heap dump of a on the device: interrupted", errors)
        self.assertEqual((output, self.device.files()), ("", []))

    def test_an_adb_that_hangs_is_given_up(self):
        _, errors = self.run_to_end("-n", "a", "--timeout", "5", code=1, FAKE_HANGS="am ")
        self.assertIn("nothing has come for 5.0 s (dumping)", errors)
        self.assertEqual(self.device.files(), [])

    def test_what_could_not_be_removed_is_named(self):
        output, errors = self.run_to_end("-n", "a", FAKE_SAYS=json.dumps({"rm": "rm: Permission denied"}))
        self.check_whole(output)
        self.assertRegex(errors, r"a dump may remain in /data/local/tmp/heap_profile-\w+ on the device \(rm: Permission denied\): "
                                 "remove it")

    def test_a_clean_up_that_hangs_can_be_left(self):
        process = self.start("-n", "a", FAKE_HANGS="rm ")
        wait_for(lambda: self.device.was_told("rm -r"), "nothing is removed")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        self.assertIn("on the device (adb has not removed it): remove it", errors)

    def test_a_device_that_is_not_there_is_told(self):
        _, errors = self.run_to_end("-n", "a", code=1, FAKE_SDK="error: no devices/emulators found")
        self.assertIn('cannot reach a device: adb answered "error: no devices/emulators found"; connect one', errors)

    def test_without_adb_its_package_is_named(self):
        os.unlink(self.path("adb"))
        _, errors = self.run_to_end("-n", "a", code=1, PATH="/nonexistent")
        self.assertIn("apt-get install adb", errors)


class BySignal(OnDevice):
    def test_a_device_before_3_0_gets_the_signal(self):
        output, _ = self.run_to_end("-n", "com.example.app", FAKE_SDK="3")
        self.check_whole(output)
        self.assertEqual(self.commands_that("kill"), ["kill -10 289 2>&1"])
        self.assertEqual(self.commands_that("rm"), [f"rm {BASE} 2>&1"])
        self.assertEqual(self.device.files(), [])

    def test_two_files_are_read_as_one_and_both_are_removed(self):
        whole = self.dump
        head, tail = head_and_tail(phone())
        self.dump = self.write("tail", tail)
        kept = self.path("kept.hprof")
        output, _ = self.run_to_end("-p", "289", "--keep", kept, FAKE_SDK="1", FAKE_HEAD=self.write("head", head))
        self.dump = whole
        self.check_whole(output)
        with open(kept, "rb") as file:
            self.assertEqual(file.read(), phone())
        self.assertEqual(self.device.files(), [])

    def test_dumps_that_were_there_stay(self):
        older = self.device.path("/data/misc/heap-dump-tm1-pid289.hprof")
        with open(older, "w") as file:
            file.write("older")
        output, _ = self.run_to_end("-p", "289", FAKE_SDK="10", FAKE_SLOW="2")
        self.check_whole(output)
        self.assertEqual(self.device.files(), ["/data/misc/heap-dump-tm1-pid289.hprof"])

    def test_root_is_needed_and_su_is_tried(self):
        _, errors = self.run_to_end("-p", "289", code=1, FAKE_SDK="8", FAKE_USER="uid=2000(shell)")
        self.assertIn("before Android 3.0 root alone can have a program dump its heap, and adb's shell is not root; try adb root",
                      errors)
        output, _ = self.run_to_end("-p", "289", FAKE_SDK="8", FAKE_USER="uid=2000(shell)", FAKE_SU="1")
        self.check_whole(output)
        self.assertEqual(self.commands_that("su root kill"), ["su root kill -10 289 2>&1"])
        self.assertEqual(self.device.files(), [])

    def test_what_root_alone_may_read_is_fetched_as_a_copy(self):
        whole = self.dump
        head, tail = head_and_tail(phone())
        self.dump = self.write("tail", tail)
        su = {"FAKE_USER": "uid=2000(shell)", "FAKE_SU": "1", "FAKE_SDK": "3"}
        output, _ = self.run_to_end("-p", "289", FAKE_HEAD=self.write("head", head), **su)
        self.dump = whole
        self.check_whole(output)
        self.assertEqual(self.device.files(), [])
        process = self.start("-p", "289", FAKE_STALLS="umask", **su)
        wait_for(lambda: any("local/tmp" in path for path in self.device.files()), "no copy")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        self.assertNotIn("may remain", errors)
        self.assertEqual(self.device.files(), [])
        _, errors = self.run_to_end("-p", "289", code=1, FAKE_SAYS=json.dumps({"umask": "No space left on device"}), **su)
        self.assertIn(f"the device does not copy {BASE}: No space left on device", errors)
        self.assertEqual(self.device.files(), [])

    def test_nobody_is_ended_by_the_signal(self):
        _, errors = self.run_to_end("-p", "289", code=1, FAKE_SDK="3",
                                    FAKE_SAYS=json.dumps({"cat /proc/289": "SigBlk:\t0000000000000000\nSigCgt:\t00000000000010ff"}))
        self.assertIn("process 289 does not wait for SIGUSR1, which would end it; is it a program of Java?", errors)
        _, errors = self.run_to_end("-p", "289", code=1, FAKE_SDK="3",
                                    FAKE_SAYS=json.dumps({"cat /proc/289": "/proc/289/status: No such file"}))
        self.assertIn('process 289 cannot be looked into: "/proc/289/status: No such file"', errors)
        self.assertEqual(self.commands_that("kill"), [])

    def test_a_name_must_be_of_one_process(self):
        for name, count in (("com.example.twice", 2), ("com.example.none", 0)):
            _, errors = self.run_to_end("-n", name, code=1, FAKE_SDK="3")
            self.assertIn(f"{count} processes on the device have this name; adb shell ps lists all, name one by -p", errors)

    def test_a_signal_that_cannot_be_sent_is_told(self):
        _, errors = self.run_to_end("-p", "289", code=1, FAKE_SDK="3", FAKE_SAYS=json.dumps({"kill": "No such process"}))
        self.assertIn('kill answers "No such process"', errors)
        self.assertNotIn("may remain", errors)

    def test_a_device_that_is_slow_to_answer_is_waited_for(self):
        output, _ = self.run_to_end("-n", "com.example.app", "--timeout", "10", FAKE_SDK="3", FAKE_DELAY="2")
        self.check_whole(output)
        self.assertGreater(len(self.device.commands()), 5)  # all of them together have taken longer

    def test_a_dump_that_may_still_come_is_named(self):
        _, errors = self.run_to_end("-p", "289", "--timeout", "5", code=1, FAKE_SDK="3", FAKE_NO_DUMP="1")
        self.assertIn("nothing has come for 5.0 s (dumping)", errors)
        self.assertIn("a dump may remain in /data/misc on the device (none is there yet): remove it", errors)


class DumpsThatAreThere(OnDevice):
    def put(self, path, data):
        with open(self.device.path(path), "wb") as file:
            file.write(data)

    def test_a_dump_of_ddms_is_fetched_and_stays(self):
        self.put("/sdcard/com.example.app.hprof", phone())
        output, errors = self.run_to_end("--pull", "/sdcard/com.example.app.hprof", "histogram")
        self.check_whole(output)
        self.assertIn("/sdcard/com.example.app.hprof on the device: a dump", errors)
        self.assertEqual(self.device.files(), ["/sdcard/com.example.app.hprof"])

    def test_a_pair_is_fetched_by_either_name(self):
        head, tail = head_and_tail(phone())
        self.put(BASE, tail)
        self.put(BASE + "-head", head)
        for name in (BASE, BASE + "-head"):
            output, _ = self.run_to_end("--pull", name)
            self.check_whole(output)
        self.assertEqual(self.device.files(), [BASE, BASE + "-head"])

    def test_a_cut_one_is_shown_as_far_as_it_goes(self):
        self.put("/sdcard/a.hprof", phone()[:-9])
        _, errors = self.run_to_end("--pull", "/sdcard/a.hprof")
        self.assertIn("without the mark that ends a dump", errors)

    def test_one_that_is_not_there_is_told(self):
        _, errors = self.run_to_end("--pull", "/sdcard/none.hprof", code=1)
        self.assertIn("cannot fetch /sdcard/none.hprof from the device: adb pull /sdcard/none.hprof fails: adb: error", errors)

    def test_a_directory_is_not_fetched(self):
        os.mkdir(self.device.path("/sdcard/DCIM"))
        self.put("/sdcard/DCIM/large.jpg", b"a picture")
        for more in ({}, {"FAKE_ENDLESS": "1"}):
            with self.subTest(more=more):
                _, errors = self.run_to_end("--pull", "/sdcard", code=1, **more)
                self.assertIn("cannot fetch /sdcard from the device: what adb fetches there is no file; look what it is", errors)

    def test_ctrl_c_while_a_pair_is_read_leaves_nothing_behind(self):
        head, tail = head_and_tail(phone())
        self.put(BASE, tail)
        self.put(BASE + "-head", head)
        self.run_to_end("--pull", BASE, code=-signal.SIGINT, FAKE_INTERRUPTS="1")

    def test_ctrl_c_ends_the_fetching(self):
        self.put("/sdcard/a.hprof", phone())
        process = self.start("--pull", "/sdcard/a.hprof", FAKE_HANGS="pull")
        wait_for(lambda: self.device.was_told("pull"), "nothing is fetched")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        self.assertIn("cannot fetch /sdcard/a.hprof from the device: interrupted", errors)


class Usage(OnDevice):
    def test_every_command_of_the_documentation_works(self):
        with open(self.device.path("/sdcard/com.example.app.hprof"), "wb") as file:
            file.write(phone())
        commands = []
        for page in ("README.md", "docs/hprof.md"):
            with open(os.path.join(ROOT, page)) as file:
                commands += re.findall(r"(?m)^heap_profile java android (.*)", file.read())
        self.assertGreater(len(commands), 3)
        for command in commands:
            words = shlex.split(command.replace("PID", "289").replace("phone.hprof", self.directory + "/kept.hprof"), comments=True)
            with self.subTest(command=command):
                self.run_to_end(*words)

    def test_what_has_no_effect_is_refused(self):
        for options, expected in (
                (["-p", "1", "--arm-oom"], "cannot use --arm-oom, --disarm-oom or --oom-path with android"),
                ([], "cannot choose a heap on the device: name one process by -p or -n, or one dump by --pull"),
                (["-p", "1", "--pull", "/a"], "cannot choose a heap on the device"),
                (["--pull", "/a", "--all"], "cannot use --all with --pull: that dump has been taken already"),
                (["-p", "1", "histgram"], "did you mean histogram")):
            with self.subTest(options=options):
                _, errors = self.run_to_end(*options, code=2)
                self.assertIn(expected, errors)
        _, errors = self.run_to_end("-p", "1", "--pull", "/a", command=(HEAP_PROFILE, "java"), code=2)
        self.assertIn("cannot use --pull: it only makes sense with heap_profile java android", errors)
        self.assertEqual(self.device.commands(), [])


class HeapGraphs(OnDevice):
    """java_heap_dump: Perfetto's own way, by a trace."""

    def dump_graph(self, *options, code=0, **env):
        env.setdefault("FAKE_SAYS", json.dumps({"exec-out": "4711", "[ -d": "gone"}))
        process = self.start(*options, command=(JAVA_HEAP_DUMP,), **env)
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, output + errors)
        return output, errors

    def trace(self, text):
        """The file on the device."""
        path = self.path("trace on the device")
        with open(path, "w") as file:
            file.write(text)
        return path

    def config(self, *options):
        text = subprocess.run([JAVA_HEAP_DUMP, "--print-config", *options], capture_output=True, text=True, check=True).stdout
        return text_format.Parse(text, config_pb2.TraceConfig())

    def test_the_configuration_is_that_of_perfettos_tool(self):
        config = self.config("-p", "1,2", "-n", "it's,b", "-c", "500", "--dump-smaps")
        java = config.data_sources[0].config
        self.assertEqual(java.name, "android.java_hprof")
        self.assertEqual(list(java.java_hprof_config.pid), [1, 2])
        self.assertEqual(list(java.java_hprof_config.process_cmdline), ["it's", "b"])
        self.assertEqual(java.java_hprof_config.continuous_dump_config.dump_interval_ms, 500)
        self.assertTrue(java.java_hprof_config.dump_smaps)
        self.assertEqual(config.data_sources[1].config.name, "android.packages_list")
        self.assertEqual((config.duration_ms, config.data_source_stop_timeout_ms), (20000, 0))  # time for more than one dump
        self.assertEqual(config.buffers[0].size_kb, 100024)
        for options in (["-n", "a"], ["-n", "a", "-c", "0"], ["-n", "a", "-c", "500", "--stop-when-done"]):
            config = self.config(*options)
            self.assertEqual((config.duration_ms, config.data_source_stop_timeout_ms), (1000, 100000))
        plain = self.config("-n", "a", "--no-versions", "--no-stop-when-done")
        self.assertEqual(len(plain.data_sources), 1)
        self.assertEqual((plain.duration_ms, plain.data_source_stop_timeout_ms), (20000, 0))

    def test_the_device_is_asked_and_the_trace_fetched(self):
        out = self.path("out.trace")
        for sdk, duration in (("33", 1000), ("29", 20000)):
            with self.subTest(sdk=sdk):
                output, _ = self.dump_graph("-n", "com.example.app", "-o", out, FAKE_SDK=sdk, FAKE_TRACE=self.trace("of " + sdk))
                self.assertIn("Wrote profile to " + out, output)
                with open(out) as file:
                    self.assertEqual(file.read(), "of " + sdk)
                self.assertEqual(os.listdir(self.path("temporary")), [])
                asked = next(c[1] for c in self.device.commands() if c[0] == "exec-out")
                text = subprocess.run(["sh", "-c", asked.split("; echo", 1)[0] + "; printf %s \"$CFG\""], capture_output=True,
                                      text=True, check=True).stdout
                self.assertEqual(text_format.Parse(text, config_pb2.TraceConfig()).duration_ms, duration)
                self.assertRegex(asked, r"\| perfetto --txt -c - -o /data/misc/perfetto-traces/java-profile-\w+ -d$")
                os.unlink(self.path("log"))

    def test_what_cannot_be_removed_there_is_one_file(self):
        for sdk, count in (("29", 1), ("30", 2)):
            with self.subTest(sdk=sdk):
                for _ in range(2):
                    self.dump_graph("-n", "a", FAKE_SDK=sdk, FAKE_TRACE=self.trace(""),
                                    FAKE_SAYS=json.dumps({"exec-out": "4711", "[ -d": "gone", "whoami": "shell"}))
                paths = {c[1].split(" -o ")[1] for c in self.device.commands() if c[0] == "exec-out"}
                self.assertEqual(len(paths), count)
                if count == 1:
                    self.assertEqual(paths, {"/data/misc/perfetto-traces/java-profile-shell -d"})
                os.unlink(self.path("log"))

    def test_a_trace_that_could_not_be_removed_there_is_kept_here(self):
        for more in ({"FAKE_HANGS": "rm -f"}, {"FAKE_FAILS": "rm -f"}):
            with self.subTest(more=more):
                process = self.start("-n", "a", command=(JAVA_HEAP_DUMP,), **more,
                                     FAKE_TRACE=self.trace("kept"), FAKE_SAYS=json.dumps({"exec-out": "4711", "[ -d": "gone"}))
                wait_for(lambda: self.device.was_told("rm -f"), "nothing is removed")
                if "FAKE_HANGS" in more:
                    process.send_signal(signal.SIGINT)
                output, errors = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 0, errors)
                self.assertRegex(errors, r"note: the trace is fetched and may remain on the device as well; adb shell rm "
                                         r"/data/misc/perfetto-traces/java-profile-\w+ removes it\n")
                with open(re.search("Wrote profile to (.*)", output)[1]) as file:
                    self.assertEqual(file.read(), "kept")
                os.unlink(self.path("log"))

    def test_a_trace_that_does_not_come_leaves_no_file(self):
        _, errors = self.dump_graph("-n", "a", code=1)
        self.assertIn("cannot pull the trace from the device: adb: error", errors)
        self.assertEqual(os.listdir(self.path("temporary")), [])

    def test_a_link_in_place_of_the_trace_is_followed(self):
        """Whose links are not is e2e/output's."""
        kept, out = self.path("kept"), self.path("out.trace")
        with open(kept, "w") as file:
            file.write("of last week")
        os.symlink(kept, out)
        self.dump_graph("-n", "a", "-o", out, FAKE_TRACE=self.trace("a trace"))
        with open(kept) as file:
            self.assertEqual(file.read(), "a trace")
        self.assertTrue(os.path.islink(out))

    def test_the_trace_can_go_to_standard_output(self):
        output, errors = self.dump_graph("-n", "a", "-o", "-", FAKE_TRACE=self.trace("a trace"))
        self.assertEqual(output, "a trace")
        self.assertIn("Wrote profile to standard output\n", errors)

    def test_a_full_disk_leaves_the_trace_where_it_is(self):
        with open("/dev/full", "w") as full:
            process = self.start("-n", "a", "-o", "-", command=(JAVA_HEAP_DUMP,), stdout=full, FAKE_TRACE=self.trace("a trace"),
                                 FAKE_SAYS=json.dumps({"exec-out": "4711", "[ -d": "gone"}))
            _, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors, r"cannot write standard output: No space left on device; adb pull "
                                 r"/data/misc/perfetto-traces/java-profile-\w+ fetches the trace to another place\n")
        self.assertFalse(self.device.was_told("rm -f"))

    def test_where_nothing_can_be_written_the_device_is_not_asked(self):
        _, errors = self.dump_graph("-n", "a", "-o", self.path("none/out.trace"), code=1)
        self.assertIn(f"cannot create {self.path('none/out.trace')}: No such file", errors)
        self.assertFalse(os.path.exists(self.path("log")))

    def test_a_device_that_refuses_is_told(self):
        _, errors = self.dump_graph("-n", "a", code=1, FAKE_SAYS=json.dumps({"exec-out": "permission denied"}))
        self.assertIn("cannot start perfetto on the device: permission denied", errors)

    def test_a_target_is_needed(self):
        process = subprocess.run([JAVA_HEAP_DUMP], capture_output=True, text=True)
        self.assertEqual(process.returncode, 2)
        self.assertIn("cannot dump a heap: neither -p nor -n is given", process.stderr)

    def test_it_says_what_it_is(self):
        text = subprocess.run([JAVA_HEAP_DUMP, "--help"], capture_output=True, text=True, check=True).stdout
        for option in ("--pid", "--name", "--output", "--continuous-dump", "--no-versions", "--dump-smaps", "--print-config",
                       "--stop-when-done", "--no-stop-when-done"):
            self.assertTrue(re.search(rf"{option}\b", text), option)


class Page(OnDevice):
    def test_every_command_works(self):
        with open(os.path.join(ROOT, "docs", "android.md")) as file:
            blocks = re.findall(r"^```\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
        trace = self.write("recorded", run([program("exits"), "return"], ["-i", "1"]).trace_bytes)
        os.mkdir(self.path("dir"))
        self.write("mapping.txt", b"com.example.App -> a:\n")
        commands = "".join(blocks).splitlines()
        self.assertGreater(len(commands), 10)
        for command in commands:
            env = self.device.environment(FAKE_DUMP=self.dump, FAKE_SAYS=json.dumps({"exec-out": "4711", "[ -d": "gone"}))
            if "heap_profile android" in command or command.startswith("java_heap_dump"):
                env["FAKE_TRACE"] = trace
            env["PATH"] = env["PATH"].replace(":", f":{os.environ['COMPAT']}:", 1)
            with self.subTest(command=command):
                done = subprocess.run(["/bin/sh", "-c", command], cwd=self.directory, env=env, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
