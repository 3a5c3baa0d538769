// What the kernel lets this process do, where its user id does not tell: root of a
// container has few of root's rights, and a filter of system calls takes others.
#pragma once

#include <string>

namespace heapprofd {

// Whether it is in effect (linux/capability.h), be it in a user name space only.
bool HasCapability(unsigned capability);

// Of the machine's root and its users, and not of a container's.
bool IsInFirstUserNamespace();

// What is said of a process whose memory the kernel does not show us: why, and what helps.
// Root without the capability is that of a container; that of a user name space has it
// over those in there.
std::string MemoryIsClosed();

// Whether a filter is in force for system calls of the calling thread.
bool IsSelfUnderSeccomp();

}  // namespace heapprofd
