"""A stand-in for adb: records what it is asked and answers like an Android device, whose files lie in a directory."""

import json
import os
import stat
import sys

# How the device behaves, by environment variables:
#   FAKE_SDK       its version
#   FAKE_DUMP      the file that a program dumps
#   FAKE_SLOW      so many looks at it (ls) pass before each third of the dump is there
#   FAKE_AM        what am dumpheap says instead of dumping
#   FAKE_USER      what id says; root when not said
#   FAKE_SU        su makes root of that user
#   FAKE_SAYS      JSON: beginning of a command: what is said to it
#   FAKE_HANGS     the commands that begin so never end
#   FAKE_FAILS     those that begin so fail and say nothing
#   FAKE_STALLS    those that begin so do their work and never end
#   FAKE_DELAY     seconds that each command takes
#   FAKE_INTERRUPTS  whoever opens the file that was fetched gets a SIGINT before it is open
#   FAKE_TRACE     the file that is fetched, whatever is asked for
#   FAKE_ENDLESS   there is always more in a directory that is fetched
ADB = """#!{python}
import fcntl, json, os, shlex, shutil, signal, sys, time
home = os.environ["FAKE_DEVICE"]
with open(os.path.join(home, "log"), "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
arguments = sys.argv[1:]
command = arguments[-1].removesuffix(" 2>&1") if arguments[0] == "shell" else arguments[0]
root = os.path.join(home, "device")

def at(path):
    return root + path

def dumped():
    with open(os.environ["FAKE_DUMP"], "rb") as file:
        return file.read()

def put(path, dump):
    with open(at(path), "wb") as file:
        file.write(dump)

# Parts of a dump that is written slowly.
def grow():
    slow = int(os.environ.get("FAKE_SLOW", "0"))
    growing = os.path.join(home, "growing")
    if not slow or not os.path.exists(growing):
        return
    with open(growing) as file:
        path, looks = file.read().split()
    looks = int(looks) + 1
    with open(growing, "w") as file:
        file.write(path + " " + str(looks))
    dump = dumped()
    put(path, dump[:len(dump) * min(looks // slow, 3) // 3])

def begin(path):
    if "FAKE_SLOW" in os.environ:
        put(path, b"")
        with open(os.path.join(home, "growing"), "w") as file:
            file.write(path + " 0")
    else:
        put(path, dumped())

def is_root():
    return "FAKE_USER" not in os.environ or "su root " in command and "FAKE_SU" in os.environ

# By a lease, which makes opening wait. Held by a process of its own, which adb's output does not wait for.
def interrupt_opener(path, opener):
    ready, told = os.pipe()
    if os.fork():
        os.close(told)
        os.read(ready, 1)
        return
    os.setsid()
    for fd in (0, 1, 2):
        os.close(fd)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
    file = os.open(path, os.O_RDWR)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    os.close(told)
    if signal.sigtimedwait([signal.SIGIO], 60):
        os.kill(opener, signal.SIGINT)
    os._exit(0)

def answer():
    for beginning, said in json.loads(os.environ.get("FAKE_SAYS", "{{}}")).items():
        if command.startswith(beginning):
            print(said)
            return
    if command == "pull" and "FAKE_TRACE" in os.environ:
        shutil.copyfile(os.environ["FAKE_TRACE"], arguments[2])
        return
    words = shlex.split(command.removeprefix("umask 077 && ").removeprefix("su root "))
    path = arguments[1] if words[0] == "pull" else words[1] if words[0] == "cat" else words[-1]
    if words[0] in ("ls", "cat", "pull") and path.startswith("/data/misc/") and not is_root():
        print("opendir failed, Permission denied")
        sys.exit(1 if words[0] == "pull" else 0)
    if command == "getprop ro.build.version.sdk":
        print(os.environ.get("FAKE_SDK", "33"))
    elif words[0] == "mkdir":
        os.mkdir(at(words[-1]))
    elif words[0] == "am":
        if os.environ.get("FAKE_AM"):
            print(os.environ["FAKE_AM"])
        elif "-g" in words and "FAKE_NO_GC" in os.environ:
            print("Error: Unknown option: -g")
        else:
            print("File: " + words[-1] + "\\nWaiting for dump to finish...")
            begin(words[-1])
    elif words[0] == "ls":
        grow()
        print("total 8")
        directory = at(words[-1])
        for name in sorted(os.listdir(directory)):
            print("-rw------- 1 shell shell", os.stat(directory + name).st_size, "2020-01-01 00:00", name)
    elif words[0] == "rm":
        for path in words[1:]:
            if path == "-r":
                continue
            if not os.path.exists(at(path)):
                print("rm failed for " + path + ", No such file or directory")
            elif os.path.isdir(at(path)):
                for name in os.listdir(at(path)):
                    os.unlink(at(path) + "/" + name)
                os.rmdir(at(path))
            else:
                os.unlink(at(path))
    elif words[0] == "id":
        print("uid=0(root) gid=0(root)" if is_root() else os.environ["FAKE_USER"])
    elif words[0] == "ps":
        print("USER     PID   PPID  VSIZE  RSS     WCHAN    PC         NAME\\n"
              "app_1     289   30    1000   100     ffffffff afe0d404 S com.example.app\\n"
              "app_2     290   30    1000   100     ffffffff afe0d404 S com.example.twice\\n"
              "app_2     291   30    1000   100     ffffffff afe0d404 S com.example.twice")
    elif words[0] == "cat" and words[-1].startswith(">"):
        shutil.copy(at(words[1]), at(words[-1][1:]))
    elif words[0] == "cat":
        print("Name:\\tapp\\nSigBlk:\\t0000000000001204\\nSigCgt:\\t0000000000000000")
    elif words[0] == "kill":
        base = "/data/misc/heap-dump-tm1240861355-pid" + words[-1] + ".hprof"
        if "FAKE_HEAD" in os.environ:
            with open(os.environ["FAKE_HEAD"], "rb") as file:
                put(base + "-head", file.read())
        if "FAKE_NO_DUMP" not in os.environ:
            begin(base)
    elif words[0] == "pull":
        path = at(arguments[1])
        if not os.path.exists(path):
            print("adb: error: failed to stat remote object '" + arguments[1] + "': No such file or directory")
            sys.exit(1)
        if os.path.isdir(path):
            shutil.copytree(path, arguments[2])
            if "FAKE_ENDLESS" in os.environ:
                signal.pause()
            return
        with open(path, "rb") as source, open(arguments[2], "wb") as file:
            file.write(source.read())
        if "FAKE_INTERRUPTS" in os.environ:
            interrupt_opener(arguments[2], os.getppid())

if "FAKE_HANGS" in os.environ and command.startswith(os.environ["FAKE_HANGS"]):
    signal.pause()
if "FAKE_FAILS" in os.environ and command.startswith(os.environ["FAKE_FAILS"]):
    sys.exit(1)
time.sleep(float(os.environ.get("FAKE_DELAY", "0")))
answer()
if "FAKE_STALLS" in os.environ and command.startswith(os.environ["FAKE_STALLS"]):
    signal.pause()
"""


class Device:
    """What the stand-in's environment is, and what it was asked."""

    def __init__(self, home):
        self.home = home
        for name in ("data/misc", "data/local/tmp", "sdcard"):
            os.makedirs(self.path("/" + name))
        adb = os.path.join(home, "adb")
        with open(adb, "w") as file:
            file.write(ADB.format(python=sys.executable))
        os.chmod(adb, stat.S_IRWXU)

    def path(self, path):
        return os.path.join(self.home, "device", path.lstrip("/"))

    def files(self):
        """Everything on it."""
        top = self.path("/")
        return sorted("/" + os.path.relpath(os.path.join(folder, name), top)
                      for folder, folders, names in os.walk(top) for name in folders + names
                      if os.path.join(folder, name) not in map(self.path, ("data", "data/misc", "data/local", "data/local/tmp",
                                                                           "sdcard")))

    def environment(self, **more):
        return {**os.environ, "PATH": self.home + ":/usr/bin:/bin", "FAKE_DEVICE": self.home, **more}

    def commands(self):
        try:
            with open(os.path.join(self.home, "log")) as log:
                return [json.loads(line) for line in log]
        except FileNotFoundError:
            return []

    def was_told(self, words):
        return any(words in " ".join(command) for command in self.commands())
