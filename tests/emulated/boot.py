"""An emulated machine that runs tests: whoever makes its file system has it say how each of them ended, and the last of
them turns it off."""

import re
import shlex
import subprocess
import threading

BOOT_S = 1200  # a machine that says nothing until then is ended; it takes 10 s of CPU
TESTS_S = 1800  # and with all of its tests


def commands(tests, command_of):
    """The shell's, of which run() finds out what has passed."""
    return 'echo "=== booted in $(cut -d. -f1 /proc/uptime) s"\n' + "".join(f"echo '=== {test}'; {command_of(test)} </dev/null; echo \"=== {test}: $?\"\n" for test in tests)


def python_test(name):
    return f"python3 -m unittest -v {shlex.quote(name)}"


def run(emulator, kernel, initrd, tests):
    """Boots, shows what the machine says, and gives the exit code: 0 when all tests have passed."""
    passed = set()
    # It ends with us, whatever ends us.
    command = ["setpriv", "--pdeathsig", "KILL", *emulator, "-kernel", kernel, "-initrd", initrd]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace") as machine:
        boot, deadline = (threading.Timer(seconds, machine.kill) for seconds in (BOOT_S, TESTS_S))
        boot.start()
        deadline.start()
        for line in machine.stdout:
            print(line.rstrip("\r\n"), flush=True)
            if line.startswith("=== "):
                boot.cancel()
            if ended := re.match(r"=== (.*): 0\r?$", line):
                passed.add(ended[1])
        boot.cancel()
        deadline.cancel()
    failed = [test for test in tests if test not in passed]
    print(f"{len(passed)} passed, {len(failed)} failed", *failed)
    return 1 if failed else 0
