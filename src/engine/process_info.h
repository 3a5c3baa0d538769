// What /proc says about a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "profile/model.h"

namespace heapprofd {

// The first `limit` bytes of a file; empty when it cannot be read.
std::string ReadAtMost(const std::string& path, size_t limit);

// Fields that cannot be read stay empty; cmdline then holds the command name. The first 4
// KiB and 256 arguments of a command line are kept, and a last one says that it is cut.
ProcessDescription DescribeProcess(pid_t pid);

// Of a thread, whose name is the program's: made fit to be shown. Empty: it has ended.
std::string ThreadName(pid_t pid, uint32_t tid);

// Its id in the innermost of its name spaces; `pid` when that is not known.
pid_t InnermostPid(pid_t pid);

// Anonymous and swapped memory in KiB; 0 when unknown.
uint64_t AnonymousKib(pid_t pid);

// The kernel's part of the memory context; zeros when the process is gone. It walks the
// process's page tables.
MemoryContext ReadMemoryContext(pid_t pid);

// The part of it that costs next to nothing.
MemoryContext ReadMemoryStatus(pid_t pid);

// CPU time that a process has used, ns. 0: there is no such process.
uint64_t ProcessCpuNs(pid_t pid);

}  // namespace heapprofd
