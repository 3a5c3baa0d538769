"""heap_profile java on real virtual machines: dumps that leave nothing behind, whoever is on the other end."""

import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import os
import re
import shlex
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import time
import unittest

from java_machine import JAVAS, WithMachine, answers, jcmd, machines_histogram, next_line, version_of
from profile_run import HEAP_PROFILE
from running_process import DEADLINE_S, MAY_ATTACH

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ALICE, MALLORY = 61001, 61002


def java(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, "java", *arguments], capture_output=True, text=True, timeout=180, **kwargs)


def succeeds(test, done):
    test.assertEqual(done.returncode, 0, done.stderr)


def left_behind(process):
    """Files of ours in the virtual machine's /tmp."""
    root = f"/proc/{process.pid}/root/tmp/"
    return glob.glob(root + f".heap_profile_{process.pid}_*") + glob.glob(root + f".attach_pid{process.pid}")


def wait_until(what, condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def children_of(pid):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


def is_full(pipe):
    """Whether somebody who writes to it has to wait."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            unread = fcntl.ioctl(fd, termios.FIONREAD, bytes(4))
            return int.from_bytes(unread, sys.byteorder) == fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
        finally:
            os.close(fd)
    return False


def no_nameless_files():
    """From now on open with O_TMPFILE gives EOPNOTSUPP, as on NFS."""
    libc = ctypes.CDLL(None, use_errno=True)
    nr = {"x86_64": 257, "aarch64": 56}[os.uname().machine]  # openat
    program = b"".join(struct.pack("HBBI", *step) for step in [
        (0x20, 0, 0, 0), (0x15, 0, 3, nr), (0x20, 0, 0, 32),  # its third argument
        (0x45, 0, 1, 0o20000000), (0x06, 0, 0, 0x00050000 | errno.EOPNOTSUPP), (0x06, 0, 0, 0x7fff0000)])
    steps = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filters, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter")


class Views(WithMachine):
    def test_the_histogram_is_the_machines_own(self):
        for flags in ([], ["-XX:+UseSerialGC"], ["-XX:-UseCompressedOops"], ["-XX:ObjectAlignmentInBytes=16"]):
            process = self.start(*flags)
            before = machines_histogram(process)
            done = java("-p", str(process.pid), "--json", "--top", "0")
            self.assertEqual(done.returncode, 0, done.stderr)
            after = machines_histogram(process)
            ours = {row["class"]: (row["objects"], row["bytes"]) for row in json.loads(done.stdout)["classes"]}
            stable = {name: row for name, row in before.items() if after.get(name) == row and name != "java.lang.Class"}
            self.assertGreater(len(stable), 150)
            self.assertEqual({name: (ours.get(name), row) for name, row in stable.items() if ours.get(name) != row}, {}, flags)
            self.assertRegex(done.stderr, r"process \d+ \(java\) took [\d.]+ m?s to dump [\d.]+ MiB\n")
            self.assertEqual(left_behind(process), [])

    def test_a_leak_is_found_by_name(self):
        process = self.start()
        done = java("-n", "Leaky", "path", "java.util.ArrayList")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(".static LEAK -> java.util.ArrayList", done.stdout)
        done = java("-p", str(process.pid), "dominators", "--top", "3")
        self.assertIn("class Leaky 0x", done.stdout)
        done = java("-p", str(process.pid), "--retained", "--json", "--all")
        rows = {row["class"]: row for row in json.loads(done.stdout)["classes"]}
        self.assertGreater(rows["java.util.ArrayList"]["retained"], 1_000_000)

    def test_leaks_of_each_kind_are_named(self):
        for kind, piled_up, held_by in [
                ("map", r"java\.util\.TreeMap\$Entry 0x\w+ retains .* is the first of 100 of its class", r"\.static REGISTRY -> "),
                ("cache", r"java\.util\.LinkedHashMap 0x\w+ retains", r"\.static SINGLETON -> Leaks\$Cache .*\n +\.entries -> "),
                ("listeners", r"java\.lang\.Object\[\] 0x\w+ retains", r"\.listeners -> "),
                ("threads", r"10\d objects of java\.lang\.Thread retain", r"java\.lang\.Thread 0x"),
                ("context", r"1\d\d objects of java\.lang\.Thread retain", r'the thread "plugin-\d+", is held by ROOT_THREAD_OBJECT\n[^\n]*\n'
                 r"and most of what it retains is in\n  \.contextClassLoader -> Leaks\$PluginLoader [\s\S]*-> class Leaks\$Plugin "),
                ("finalizers", r"(99|100) objects of Leaks\$Resource retain", r"that retains most is held by ROOT_FINALIZING\n"),
                ("loaders", r"java\.lang\.Object\[\] 0x\w+ retains [^\n]*\n[^\n]* byte\[\]\n", r"\.static DEPLOYED -> ")]:
            with self.subTest(kind):
                process = self.start(program=["Leaks", kind])
                done = java("-p", str(process.pid), "leaks")
                self.assertEqual(done.returncode, 0, done.stderr)
                first = done.stdout.split("\n\n")[1]
                self.assertRegex(first, r"^1\. (" + piled_up + ")")
                self.assertRegex(first, held_by)
                done = java("-p", str(process.pid), "leaks", "--json", "--top", "1")
                suspect = json.loads(done.stdout)["suspects"][0]
                self.assertGreater(suspect["retained"], sum(part["bytes"] for part in suspect["classes"]) * 0.99)

    def test_every_virtual_machine_here(self):
        for path in JAVAS:
            with self.subTest(path):
                process = self.start(java=path)
                done = java("-p", str(process.pid), "dominators", "--all")
                if version_of(path) >= 17:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("class Leaky 0x", done.stdout)
                else:
                    self.assertIn("writes dumps to new files only", done.stderr)
                self.assertEqual(left_behind(process), [])

    def test_without_a_process_it_lists_them(self):
        process = self.start()
        done = java()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, rf"(?m)^ *{process.pid} +{os.getuid()}  java .*-cp")
        other = self.start()
        done = java("-n", "Leaky")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot choose a virtual machine named Leaky", done.stderr)
        self.assertIn(str(other.pid), done.stderr)
        self.assertIn("name one by -p", done.stderr)

    def test_the_dump_can_be_kept(self):
        process = self.start()
        done = java("-p", str(process.pid), "--keep", self.path("a.hprof"))
        self.assertEqual(done.returncode, 0, done.stderr)
        status = os.stat(self.path("a.hprof"))
        self.assertEqual((stat.S_IMODE(status.st_mode), status.st_uid), (0o600, os.getuid()))
        kept = subprocess.run([HEAP_PROFILE, "hprof", "histogram", self.path("a.hprof")], capture_output=True, text=True)
        self.assertEqual(kept.stdout.splitlines()[1:], done.stdout.splitlines()[1:])
        for name in ("a.hprof", "link"):
            if name == "link":
                os.symlink(self.path("elsewhere"), self.path("link"))
            done = java("-p", str(process.pid), "--keep", self.path(name))
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is something of this name", done.stderr)
        self.assertCountEqual(os.listdir(self.directory), ["a.hprof", "link"])

    def test_every_command_of_the_documentation_works(self):
        process = self.start()
        commands = []
        for page in ("README.md", "docs/hprof.md"):
            with open(os.path.join(ROOT, page)) as file:
                commands += re.findall(r"(?m)^(?:tools/)?heap_profile java(?! android).*", file.read())
        self.assertGreater(len(commands), 7)
        means = {"PID": str(process.pid), "app.jar": "Leaky", "com.example.Node": "Leaky$Entry"}
        for command in commands:
            done = java(*[means.get(word, word) for word in shlex.split(command, comments=True)[2:]], cwd=self.directory)
            self.assertEqual(done.returncode, 0, command + "\n" + done.stderr)

    def test_what_has_become_more(self):
        process = self.start()
        java("-p", str(process.pid), "--keep", self.path("a.hprof"))
        process.stdin.write("more\n")
        process.stdin.flush()
        self.assertEqual(next_line(process), "more\n")
        done = java("-p", str(process.pid), "compare", "--json", self.path("a.hprof"))
        self.assertEqual(done.returncode, 0, done.stderr)
        first = json.loads(done.stdout)["classes"][0]
        self.assertEqual(first["class"], "byte[]")
        self.assertGreaterEqual(first["bytes"] - first["before"]["bytes"], 1_000_000)
        os.mkfifo(self.path("fifo"))
        with subprocess.Popen(["cp", self.path("a.hprof"), self.path("fifo")]):
            done = java("-p", str(process.pid), "compare", self.path("fifo"))
        self.assertRegex(done.stdout, r"(?m)^ +\d+ +\+\d+ +\d+ +\+1\d{6}  byte\[\]$")

    def test_wrong_command_lines(self):
        process = self.start()
        pid = str(process.pid)
        for arguments, code, cause in [
                (["-p", pid, "shrink"], 2, "there is no such view; heap_profile java --help lists them"), (["histogram"], 2, "neither -p nor -n is given"),
                (["-p", pid, "path"], 2, "one object is needed"), (["-p", pid, "compare"], 2, "one older dump is needed"),
                (["-p", pid, "compare", self.path("none")], 1, "No such file"), (["-p", pid, "histogram", "X"], 2, "of no single object"),
                (["-p", pid, "-n", "x"], 2, "name one of them"), (["-n", "no such name"], 1, "cannot find a virtual machine"),
                (["-p", pid, "--oom-path", "/tmp"], 2, "only makes sense with --arm-oom"),
                (["-p", pid, "--arm-oom", "histogram"], 2, "these only set flags"),
                (["-p", pid, "--arm-oom", "--disarm-oom"], 2, "together"), (["-p", "4194304"], 1, "there is no such process"),
                (["--json"], 2, "without which virtual machines are listed"), (["--timeout", "1"], 2, "neither -p nor -n is given"),
                (["-p", pid, "--arm-oom", "--all"], 2, "these only set flags"), (["-p", pid, "--disarm-oom", "--top", "1"], 2, "only set flags"),
                (["-p", pid, "path", "Missing"], 1, "no object has this address or class"),
                (["-p", pid, "--keep", self.path("none/x")], 1, "No such file"), (["-p", str(os.getpid())], 2, "no HotSpot")]:
            with self.subTest(arguments):
                done = java(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(cause, done.stderr)
                self.assertIn("heap_profile java: cannot ", done.stderr)
                self.assertEqual(done.stdout, "")
        self.assertTrue(answers(process))


class OutOfMemory(WithMachine):
    def test_a_dump_is_left_when_asked_for(self):
        process = self.start(stderr=subprocess.DEVNULL)
        pid = str(process.pid)
        done = java("-p", pid, "--arm-oom")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"java_pid{pid}.hprof in its working directory", done.stderr)
        done = java("-p", pid, "--arm-oom", "--oom-path", self.directory)
        self.assertIn(self.directory, done.stderr)
        self.assertIn("-XX:+HeapDumpOnOutOfMemoryError", jcmd(process, "VM.flags"))
        process.communicate("hog\n", timeout=DEADLINE_S)
        done = subprocess.run([HEAP_PROFILE, "hprof", "dominators", self.path(f"java_pid{pid}.hprof")], capture_output=True, text=True)
        self.assertIn("java.util.ArrayList", done.stdout, done.stderr)
        done = subprocess.run([HEAP_PROFILE, "hprof", "threads", self.path(f"java_pid{pid}.hprof")], capture_output=True, text=True)
        self.assertRegex(done.stdout, r'threads\n\n"main" [^\n]*\n    ran out of memory: it makes an OutOfMemoryError\n'
                                      r"    at java\.lang\.OutOfMemoryError\.<init>")
        self.assertEqual(done.stdout.count("ran out of memory"), 1)

    def test_that_can_be_taken_back(self):
        process = self.start("-XX:HeapDumpPath=" + self.path("own"), "-XX:+HeapDumpOnOutOfMemoryError", stderr=subprocess.DEVNULL)
        armed = java("-p", str(process.pid), "--arm-oom").stderr
        self.assertIn("leaves, as it would have before, a dump when it runs out of memory: " + self.path("own"), armed)
        done = java("-p", str(process.pid), "--disarm-oom")
        self.assertEqual(done.returncode, 0, done.stderr)
        process.communicate("hog\n", timeout=DEADLINE_S)
        self.assertEqual(os.listdir(self.directory), [])


class Ends(WithMachine):
    """What ends before the dump does."""

    @contextlib.contextmanager
    def in_the_middle(self, process, *arguments, **kwargs):
        """heap_profile and its messenger, which is stopped while the virtual machine waits for it to read on."""
        tool, messenger = None, None
        deadline = time.monotonic() + DEADLINE_S
        try:
            while messenger is None:
                self.assertLess(time.monotonic(), deadline, "no dump goes on")
                tool = subprocess.Popen([HEAP_PROFILE, "java", "-p", str(process.pid), *arguments], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, **kwargs)
                messenger = self.hold(process, tool)
                if messenger is None:  # it was too fast for us
                    tool.communicate(timeout=DEADLINE_S)
                    for name in os.listdir(self.directory):
                        os.unlink(self.path(name))
            yield tool, messenger
        finally:
            tool.kill()
            if messenger is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(messenger, signal.SIGCONT)
            tool.communicate()

    def hold(self, process, tool):
        """The messenger; None: the dump is over."""
        def pipes():
            return glob.glob(f"/tmp/.heap_profile_{process.pid}_*/dump.hprof")
        wait_until("no pipe", lambda: pipes() or tool.poll() is not None)
        messengers = children_of(tool.pid)
        for messenger in messengers:
            os.kill(messenger, signal.SIGSTOP)
        give_up = time.monotonic() + 5  # that nothing fills the pipe means that all was written
        while messengers and pipes() and time.monotonic() < give_up:
            if any(is_full(pipe) for pipe in pipes()):
                return messengers[0]
            time.sleep(0.005)
        for messenger in messengers:
            os.kill(messenger, signal.SIGCONT)
        return None

    def check_unharmed(self, process):
        wait_until("something is left", lambda: left_behind(process) == [])
        self.assertTrue(answers(process))
        succeeds(self, java("-p", str(process.pid)))

    def test_heap_profile_is_killed(self):
        process = self.start(times=50)
        for _ in range(3):
            with self.in_the_middle(process, "--keep", self.path("a.hprof")) as (tool, _):
                tool.kill()
            self.check_unharmed(process)
        self.assertEqual(os.listdir(self.directory), [])

    def test_its_messenger_is_killed(self):
        process = self.start(times=50)
        with self.in_the_middle(process) as (tool, messenger):
            os.kill(messenger, signal.SIGKILL)
            self.assertIn("was ended by signal 9 (Killed)", tool.communicate(timeout=DEADLINE_S)[1])
            self.assertEqual(tool.returncode, 1)
        self.check_unharmed(process)

    def test_ctrl_c(self):
        process = self.start(times=50)
        for asked in (signal.SIGINT, signal.SIGQUIT):
            with self.in_the_middle(process, "--keep", self.path("a.hprof")) as (tool, messenger):
                tool.send_signal(asked)
                os.kill(messenger, signal.SIGCONT)
                message = tool.communicate(timeout=DEADLINE_S)[1]
            self.assertEqual((tool.returncode, message),
                             (1, f"heap_profile java: cannot take a heap dump of process {process.pid} (java): interrupted\n"))
            self.assertEqual(os.listdir(self.directory), [])
            self.check_unharmed(process)

    def test_a_file_system_without_nameless_files(self):
        process = self.start(times=50)
        for asked in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            with self.in_the_middle(process, "--keep", self.path("a.hprof"), preexec_fn=no_nameless_files) as (tool, messenger):
                self.assertRegex(" ".join(os.listdir(self.directory)), r"^\.a\.hprof\.\w{8}$")
                tool.send_signal(asked)
                os.kill(messenger, signal.SIGCONT)
                tool.communicate(timeout=DEADLINE_S)
            self.assertNotIn("a.hprof", os.listdir(self.directory))
            if asked != signal.SIGKILL:
                self.assertEqual(os.listdir(self.directory), [])
            self.check_unharmed(process)
        done = java("-p", str(process.pid), "--keep", self.path("b.hprof"), preexec_fn=no_nameless_files)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([name for name in os.listdir(self.directory) if "b.hprof" in name], ["b.hprof"])

    def test_the_machine_is_killed(self):
        process = self.start(times=50)
        with self.in_the_middle(process) as (tool, messenger):
            process.kill()
            process.wait(timeout=DEADLINE_S)
            os.kill(messenger, signal.SIGCONT)
            message = tool.communicate(timeout=DEADLINE_S)[1]
        self.assertEqual(tool.returncode, 1, message)
        self.assertIn("cannot take a heap dump", message)
        self.assertEqual(glob.glob(f"/tmp/.heap_profile_{process.pid}_*"), [])

    def test_the_messenger_stands_still(self):
        process = self.start(times=50)
        with self.in_the_middle(process, "--timeout", "1") as (tool, _):
            message = tool.communicate(timeout=DEADLINE_S)[1]
        self.assertRegex(message, r"nothing has come for 1\.0 s \(\w[^)]*\); look what it does")
        self.check_unharmed(process)

    def test_the_machine_stands_still(self):
        process = self.start()
        jcmd(process, "VM.version")  # it listens
        process.send_signal(signal.SIGSTOP)
        done = java("-p", str(process.pid), "--timeout", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing has come for 1.0 s (being asked to listen)", done.stderr)
        done = java("-p", str(process.pid), "--arm-oom", "--timeout", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing has come for 1.0 s (reading HeapDumpOnOutOfMemoryError); look what it does", done.stderr)
        process.send_signal(signal.SIGCONT)
        self.check_unharmed(process)

    def test_there_is_no_room(self):
        process = self.start(times=5)
        for arguments in ([], ["--keep", self.path("a.hprof")]):
            done = subprocess.run(["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh", HEAP_PROFILE, "java", "-p", str(process.pid),
                                   *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn("the dump cannot be written: File too large", done.stderr)
            self.check_unharmed(process)
        self.assertEqual(os.listdir(self.directory), [])


class Others(WithMachine):
    """Who is not to be asked, or is not who he seems to be."""

    def refused(self, process, cause, code=1, **kwargs):
        done = java("-p", str(process.pid), **kwargs)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(cause, done.stderr)
        self.assertEqual(left_behind(process), [])

    def test_a_machine_that_quits_when_asked(self):
        process = self.start("-Xrs")
        self.refused(process, "it was started with -Xrs and so does not handle SIGQUIT, by which it would be asked to listen; start it without -Xrs\n")
        self.assertTrue(answers(process))

    def test_a_machine_that_does_not_listen(self):
        process = self.start("-XX:+DisableAttachMechanism")
        self.refused(process, "it has not begun to listen within 10.0 s")
        lines = iter(lambda: next_line(process), "")
        self.assertTrue(any("Full thread dump" in line for line in lines))

    def test_another_process_in_its_place(self):
        process = self.start()
        place = f"/tmp/.java_pid{process.pid}"
        with socket.socket(socket.AF_UNIX) as impostor:
            impostor.bind(place)
            self.addCleanup(lambda: os.path.exists(place) and os.unlink(place))
            impostor.listen()
            self.refused(process, f"process {os.getpid()} of user {os.getuid()} listens in its place")
            impostor.setblocking(False)
            connection, _ = impostor.accept()
            with connection:
                self.assertEqual(connection.recv(1000), b"", "it was told something")
        # What is left of the socket is no hindrance.
        succeeds(self, java("-p", str(process.pid)))

    def test_no_socket_in_its_place(self):
        process = self.start()
        place = f"/tmp/.java_pid{process.pid}"
        for make in (lambda: open(place, "w").close(), lambda: os.symlink("/run/somewhere", place)):
            make()
            self.addCleanup(lambda: os.path.lexists(place) and os.unlink(place))
            self.refused(process, "is no socket; remove that")
            os.unlink(place)

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
    def test_files_of_other_users_in_its_place(self):
        process = self.start(user=ALICE, group=ALICE)
        for name in (".java_pid", ".attach_pid"):
            place = f"/tmp/{name}{process.pid}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)  # of a virtual machine that had this number and was killed
            if name == ".java_pid":
                with socket.socket(socket.AF_UNIX) as impostor:
                    impostor.bind(place)
            else:
                open(place, "w").close()
            os.chown(place, MALLORY, MALLORY)
            done = java("-p", str(process.pid))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{place} belongs to user {MALLORY}; remove that", done.stderr)
            os.unlink(place)

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
    def test_machines_of_other_users(self):
        process = self.start(user=ALICE, group=ALICE)
        succeeds(self, java("-p", str(process.pid), "--keep", self.path("a.hprof")))
        status = os.stat(self.path("a.hprof"))
        self.assertEqual((stat.S_IMODE(status.st_mode), status.st_uid), (0o600, 0))
        succeeds(self, java("-p", str(process.pid), user=ALICE, group=ALICE))
        self.refused(process, f"it belongs to user {ALICE}; run heap_profile as this user or as root", user=MALLORY, group=MALLORY)

    def wrapper_with_own_tmp(self, *namespaces, size="64m"):
        setup = ('exec 3<"$0/Leaky.class" 4<"$0/Leaky\\$Entry.class"; mount -t tmpfs -o size=' + size + ' tmpfs /tmp && '
                 'mkdir -p "$0" && cat <&3 >"$0/Leaky.class" && cat <&4 >"$0/Leaky\\$Entry.class" && exec 3<&- 4<&- "$@"')
        return ["unshare", "--mount", *namespaces, "sh", "-c", setup, self.classes]

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to mount a file system")
    def test_a_machine_that_would_fill_its_tmp(self):
        for path in (path for path in JAVAS if version_of(path) >= 22):
            process = self.start(java=path, times=20, wrapper=self.wrapper_with_own_tmp(size="30m"))
            self.refused(process, "it would first collect the dump (of up to ")
            self.assertTrue(answers(process))
            process = self.start(java=path, times=20, wrapper=self.wrapper_with_own_tmp(size="300m"))
            done = java("-p", str(process.pid))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(left_behind(process), [])

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to make a container")
    def test_a_machine_in_a_container(self):
        outer = self.start(wrapper=self.wrapper_with_own_tmp("--pid", "--fork", "--mount-proc", "--kill-child"))
        listed = [line.split() for line in java().stdout.splitlines()]
        pid = next(line[0] for line in listed if line[2] == "java" and self.classes in line)
        done = java("-p", pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Leaky$Entry", done.stdout)
        self.assertEqual(re.findall(r"heap_profile|attach_pid", " ".join(os.listdir(f"/proc/{pid}/root/tmp"))), [])
        self.assertTrue(answers(outer))


if __name__ == "__main__":
    unittest.main()
