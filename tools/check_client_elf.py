#!/usr/bin/env python3
"""Checks that a client library keeps its contract with the process that it is loaded into."""

import re
import subprocess
import sys

NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
EXPORTED = set("""
malloc calloc realloc reallocarray free posix_memalign aligned_alloc memalign valloc pvalloc malloc_usable_size
free_sized free_aligned_sized dlopen dlmopen dlclose mlockall heapprofd_recorder_v2
mallocx rallocx xallocx sallocx dallocx sdallocx nallocx
execl execle execlp execv execve execvp execvpe posix_spawn posix_spawnp
prctl syscall
_Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t
_ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t
_ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t
_ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t
""".split())
CLIENT_EXPORTED = set("""
AHeapInfo_create AHeapInfo_setEnabledCallback AHeapInfo_setDisabledCallback
AHeapProfileEnableCallbackInfo_getSamplingInterval AHeapProfile_registerHeap AHeapProfile_reportAllocation
AHeapProfile_reportSample AHeapProfile_reportFree heapprofd_nested_begin heapprofd_nested_end heapprofd_label_push
heapprofd_label_pop heapprofd_mark heapprofd_dump_now heapprofd_recorder_v2
""".split())
CLIENT_SONAME = "libheapprofd_client.so.1"
CLIENT_VERSION = "HEAPPROFD_CLIENT_1.0"  # of every symbol: a later one gets a node of its own
PRIVATE = "heapprofd_recorder_v2@@HEAPPROFD_CLIENT_PRIVATE"
PROBES = {("otel_memory", "alloc"), ("otel_memory", "free")}
IMPORTED = {"_r_debug", "_dl_debug_addr", "__libc_stack_end", "__environ", "_thread_db_pthread_tid",
            "_thread_db_sizeof_pthread"}
CLIENT_IMPORTED = {"pthread_create", "pthread_join"}
MAX_CODE_AND_DATA = 128 * 1024  # bytes
MAX_CONSTRUCTORS = 2
NEWEST_GLIBC = (2, 28)  # that a library may ask for: Debian 10, RHEL 8


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def interface_problems_of(path):
    """The promises of libheapprofd_client.so to those who link with it."""
    soname = re.search(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "-dW", path))
    if not soname or soname[1] != CLIENT_SONAME:
        yield f"is not named {CLIENT_SONAME}"
    for line in output_of("nm", "-D", "--defined-only", path).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A" and not name.endswith("@@" + CLIENT_VERSION) and name != PRIVATE:
            yield f"exports {name} without the version {CLIENT_VERSION}"


def probes_of(path):
    """Static probes (provider, name), from the notes that tracers read."""
    notes = output_of("readelf", "-nW", path)
    return set(re.findall(r"Provider: (\S+)\n\s+Name: (\S+)\n.*Semaphore: 0x0*[1-9a-f]", notes))


def needed_versions_of(path):
    """Versions of other libraries without which the loader refuses this one."""
    _, _, needs = output_of("readelf", "-VW", path).partition("Version needs section")
    return re.findall(r"Name: (\S+) ", needs)


def is_old_enough(version):
    numbers = re.fullmatch(r"GLIBC_([0-9.]+)", version)  # not GLIBC_PRIVATE, GLIBC_ABI_DT_RELR
    return numbers is not None and tuple(map(int, numbers[1].split("."))) <= NEWEST_GLIBC


def problems_of(path, expected=frozenset(EXPORTED), imported=frozenset(IMPORTED)):
    """Yields one line of text per broken promise."""
    dynamic = output_of("readelf", "-dW", path)
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if name not in NEEDED:
            yield f"needs {name}"
    for version in needed_versions_of(path):
        if not is_old_enough(version):
            yield f"needs {version}, which is not in every glibc from {'.'.join(map(str, NEWEST_GLIBC))} on"
    if "TEXTREL" in dynamic:
        yield "has text relocations"
    constructors = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", dynamic)
    if constructors and int(constructors[1]) > 8 * MAX_CONSTRUCTORS:
        yield f"has {int(constructors[1]) // 8} constructors, more than {MAX_CONSTRUCTORS}"
    exported = set()
    for line in output_of("nm", "-D", path).splitlines():
        kind, name = line.split()[-2:]
        name = name.split("@")[0]
        if kind in "Uvw":
            if name not in imported:
                yield f"imports {name}"
            elif kind == "U":
                yield f"imports {name}, but not weakly"
        elif kind != "A":  # the name of a version
            exported.add(name)
    for name in sorted(exported - expected):
        yield f"exports {name}"
    for name in sorted(expected - exported):
        yield f"does not export {name}"
    for provider, name in sorted(PROBES - probes_of(path)):
        yield f"has no probe {provider}:{name} with a semaphore"
    relocations = output_of("readelf", "-rW", path)
    for kind in ("R_X86_64_DTPMOD64", "R_X86_64_TLSDESC", "R_AARCH64_TLS_DTPMOD", "R_AARCH64_TLSDESC"):
        if kind in relocations:
            yield f"has thread-local variables that need {kind}"
    if re.search(r"LOAD.* RWE ", output_of("readelf", "-lW", path)):
        yield "has memory that is writable and executable"
    text, data = output_of("size", path).splitlines()[1].split()[:2]
    if int(text) + int(data) > MAX_CODE_AND_DATA:
        yield f"has {int(text) + int(data)} bytes of code and data, more than {MAX_CODE_AND_DATA}"


def main():
    if "libheapprofd_client" in sys.argv[1]:
        problems = [*problems_of(sys.argv[1], CLIENT_EXPORTED, IMPORTED | CLIENT_IMPORTED), *interface_problems_of(sys.argv[1])]
    else:
        problems = list(problems_of(sys.argv[1]))
    for problem in problems:
        print(f"{sys.argv[1]}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
