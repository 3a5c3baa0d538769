// Why a process is not attached to, in words.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace heapprofd {

// What is said of a thread of which nothing else is known.
inline constexpr char kDidNotStop[] =
    " did not stop in time (an uninterruptible sleep, or too much runs on this machine)";

// Why a thread could not be seized, and what to do.
Status SeizeError(pid_t pid, int error);

// kUnavailable: "cannot attach to process PID: " and why.
Status CannotAttach(pid_t pid, const std::string& why);

// kTryAgain: the process was about to change.
Status LostRace(pid_t pid, const std::string& why);

// kTryAgain: a thread is inside an exec, and must not be traced there (exec_rights.h).
Status IsInExecNow(pid_t pid);

// Why a thread that we trace could not be waited for: kNotFound, it has ended; kTryAgain,
// it did not stop.
Status LostThread(pid_t pid, pid_t tid);

// Why `size` bytes of memory could not be mapped in the process (errno of its mmap), and
// what to do.
Status MemoryRefused(pid_t pid, int error, uint64_t size);

// A program that was to be caught at its start, which it has not reached.
Status EndedAtStart(pid_t pid);

// Code pages cannot be written to, although we are a tracer.
Status CannotWriteCode(pid_t pid);

// Memory that was mapped for the client's image cannot be written to.
Status CannotWriteMemory(pid_t pid);

}  // namespace heapprofd
