"""An emulated machine that runs tests: whoever makes its file system has it say how each of them ended, and the last of
them turns it off."""

import re
import shlex
import subprocess
import threading

PATIENCE_S = 1800


def commands(tests, command_of):
    """The shell's, of which run() finds out what has passed."""
    return "".join(f"echo '=== {test}'; {command_of(test)} </dev/null; echo \"=== {test}: $?\"\n" for test in tests)


def python_test(name):
    return f"python3 -m unittest -v {shlex.quote(name)}"


def run(emulator, kernel, initrd, tests):
    """Boots, shows what the machine says, and gives the exit code: 0 when all tests have passed."""
    passed = set()
    # It ends with us, whatever ends us.
    command = ["setpriv", "--pdeathsig", "KILL", *emulator, "-kernel", kernel, "-initrd", initrd]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace") as machine:
        deadline = threading.Timer(PATIENCE_S, machine.kill)
        deadline.start()
        for line in machine.stdout:
            print(line.rstrip("\r\n"), flush=True)
            if ended := re.match(r"=== (.*): 0\r?$", line):
                passed.add(ended[1])
        deadline.cancel()
    failed = [test for test in tests if test not in passed]
    print(f"{len(passed)} passed, {len(failed)} failed", *failed)
    return 1 if failed else 0
