// What /proc says about a process.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "profile/model.h"

namespace heapprofd {

// Fields that cannot be read stay empty; cmdline then holds the command name.
ProcessDescription DescribeProcess(pid_t pid);

// Resident memory of the process in KiB; 0 when unknown.
uint64_t ResidentKib(pid_t pid);

// Anonymous and swapped memory in KiB; 0 when unknown.
uint64_t AnonymousKib(pid_t pid);

// The kernel's part of the memory context; zeros when the process is gone.
MemoryContext ReadMemoryContext(pid_t pid);

}  // namespace heapprofd
