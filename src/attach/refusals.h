// Why a process is not attached to, in words.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/status.h"

namespace heapprofd {

// kUnavailable: "cannot attach to process PID: " and why.
Status CannotAttach(pid_t pid, const std::string& why);

// kTryAgain: the process was about to change.
Status LostRace(pid_t pid, const std::string& why);

// Why a thread that we trace could not be waited for: kNotFound, it has ended; kTryAgain,
// it did not stop.
Status LostThread(pid_t pid, pid_t tid);

// A program that was to be caught at its start, which it has not reached.
Status EndedAtStart(pid_t pid);

// Code pages cannot be written to, although we are a tracer.
Status CannotWriteCode(pid_t pid);

}  // namespace heapprofd
