"""A world of its own for each attack, which ends with it.

An attack runs in a new process and mount namespace: empty /tmp, /run, /var/tmp and /dev/shm, the built product under
/run/product. What it leaves behind, services that hold up every exec of the machine included, is killed by the kernel
when the namespace's first process ends: at the attack's end, at its deadline, or with whoever started it.
"""

import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import time
import traceback

PRODUCT = "/run/product"
BUILD = os.path.realpath(os.environ.get("BUILD_DIRECTORY", "build/dev"))
# Where the helpers of tests/e2e look; they are imported after this.
os.environ.update(HEAP_PROFILE=f"{PRODUCT}/src/cli/heap_profile", COMPAT=f"{PRODUCT}/src/cli",
                  TEST_PROGRAMS=f"{PRODUCT}/tests/programs")
for name in ("XDG_RUNTIME_DIR", "HEAPPROFD_DIRECTORY", "HEAPPROFD_SESSION", "LD_PRELOAD"):
    os.environ.pop(name, None)

END_S = 5  # for the end of an attack's processes
FIRST = -20  # nice(2)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def unshare(flags):
    _checked(_LIBC.unshare(flags), "cannot unshare")


def mount(source, target, kind, flags=0, options=None):
    _checked(_LIBC.mount(source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags),
                         options.encode() if options else None), f"cannot mount {target}")


def prctl(option, value):
    _checked(_LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "cannot prctl")


def ptrace(request, pid):
    _LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return _checked(_LIBC.ptrace(request, pid, None, None), "cannot ptrace")


def _enter():
    build = os.open(BUILD, os.O_PATH | os.O_DIRECTORY)  # it may lie in a folder that is hidden now
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    for place, mode in (("/tmp", "1777"), ("/run", "755"), ("/var/tmp", "1777"), ("/dev/shm", "1777")):
        mount("attack", place, "tmpfs", options=f"mode={mode},size=3g")
    os.mkdir(PRODUCT)
    mount(f"/proc/self/fd/{build}", PRODUCT, None, MS_BIND)
    os.close(build)
    os.chdir("/tmp")


def _work(work, deadline_s, answer_fd):
    """In the namespace; never returns."""
    faulthandler.dump_traceback_later(deadline_s - 1)  # says where it hangs
    try:
        answer = work()
    except Exception:  # pylint: disable=broad-except
        answer = {"error": traceback.format_exc()}
    os.write(answer_fd, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def _be_first(work, deadline_s, answer_fd):
    """The namespace's first process; when it ends, so does everything in there. Never returns."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _enter()
        worker = os.fork()
        if worker == 0:
            _work(work, deadline_s, answer_fd)
        while os.wait()[0] != worker:  # orphans come here
            pass
    except OSError as error:
        _tell_impossible(error, answer_fd)
    finally:
        os._exit(0)


def _take_precedence():
    """Limits are of a machine that does nothing else: what else runs on this one waits. The scheduler weighs sessions
    against each other first (sched(7), autogroup), and processes only within them."""
    os.setsid()
    with contextlib.suppress(OSError):  # it may not in a container
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(FIRST))


def _keep(work, deadline_s, answer_fd):
    """Between us and the namespace, whose first process dies with this one; never returns."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _take_precedence()
        unshare(CLONE_NEWNS | CLONE_NEWPID)
        first = os.fork()
        if first == 0:
            _be_first(work, deadline_s, answer_fd)
        os.waitpid(first, 0)
    except OSError as error:
        _tell_impossible(error, answer_fd)
    finally:
        os._exit(0)


def _tell_impossible(error, answer_fd):
    os.write(answer_fd, json.dumps({"impossible": f"no namespaces: {error}"}).encode() + b"\n")


def isolated(work, deadline_s):
    """What work() gives (a dict), or {"error": why}."""
    sys.stdout.flush()
    sys.stderr.flush()
    read_end, write_end = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(read_end)
        _keep(work, deadline_s, write_end)
    os.close(write_end)
    end = time.monotonic() + deadline_s
    text = b""
    while not text.endswith(b"\n"):
        if not select.select([read_end], [], [], max(0, end - time.monotonic()))[0]:
            text = json.dumps({"error": f"it had not ended after {deadline_s} s"}).encode() + b"\n"
        elif part := os.read(read_end, 65536):
            text += part
        else:
            text = b'{"error": "it died"}\n'
    os.close(read_end)
    # By itself it ends when all in the namespace have.
    pidfd = os.pidfd_open(keeper)
    select.select([pidfd], [], [], max(0, min(END_S, end - time.monotonic())))
    os.close(pidfd)
    os.kill(keeper, signal.SIGKILL)
    os.waitpid(keeper, 0)
    return json.loads(text)
