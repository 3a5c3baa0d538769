// What /proc says about a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "profile/model.h"

namespace heapprofd {

// Fields that cannot be read stay empty; cmdline then holds the command name. The first 4
// KiB and 256 arguments of a command line are kept, and a last one says that it is cut.
ProcessDescription DescribeProcess(pid_t pid);

// Of a thread, whose name is the program's: made fit to be shown. Empty: it has ended.
std::string ThreadName(pid_t pid, uint32_t tid);

// Anonymous and swapped memory in KiB; 0 when unknown.
uint64_t AnonymousKib(pid_t pid);

// The kernel's part of the memory context; zeros when the process is gone. It walks the
// process's page tables.
MemoryContext ReadMemoryContext(pid_t pid);

// Tells the memory of the program that a process runs from that of the next one that it
// becomes, most times: by the size of its code, which stays, and its largest size, which
// never falls. What tells more the kernel keeps back while a process hangs in an exec.
struct MemoryImage {
  uint64_t code_kib = 0;
  uint64_t peak_kib = 0;

  // The same one, later.
  bool MayBecome(const MemoryImage& later) const;
};

struct MemoryStatus {
  MemoryContext context;  // the part of it that costs next to nothing
  MemoryImage image;      // of the same moment
};

MemoryStatus ReadMemoryStatus(pid_t pid);

// CPU time that a process has used, ns. 0: there is no such process.
uint64_t ProcessCpuNs(pid_t pid);

}  // namespace heapprofd
