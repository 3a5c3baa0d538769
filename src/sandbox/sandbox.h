// Gives up rights of this process for good: before it does work for another user, or
// reads bytes that somebody else has written. Whoever takes over the process afterwards
// has what was kept and nothing else.
//
// The order that works: CloseAllBut, DropCapabilities (keeping CAP_SETUID and
// CAP_SETGID), BecomeUser (which takes those two, too), MakeUndumpable,
// RestrictSystemCalls. Each is about the whole process, but DropCapabilities, which is
// about the calling thread: call it while there is one. Nothing is taken back on failure:
// end the process then.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "base/status.h"

namespace heapprofd {

// The bit of CAP_...: see linux/capability.h.
constexpr uint64_t CapabilityBit(unsigned capability) {
  return uint64_t{1} << capability;
}

// Keeps at most `keep` (CapabilityBit, or'ed) of the permitted and effective
// capabilities, nothing to inherit and nothing ambient. Takes the rest from the bounding
// set as well if CAP_SETPCAP is there. A root without capabilities still owns root's
// files.
Status DropCapabilities(uint64_t keep);

// All four uids and gids and the supplementary groups. For another uid than root this
// gives up every capability. PR_SET_PDEATHSIG stays. Without the right to change them:
// succeeds only when uid and gid are ours already; the groups then stay.
Status BecomeUser(uid_t uid, gid_t gid, std::span<const gid_t> groups);

// No program that this process or its children execute gets rights that it has not:
// setuid bits, file capabilities and uid 0 give nothing.
Status ForbidNewPrivileges();

// Nobody but root looks into this process, and it leaves no core dump. Linux undoes this
// when a program is executed.
Status MakeUndumpable();

// Closes every other descriptor, standard input, output and error too.
void CloseAllBut(std::span<const int> kept);

enum class SystemCalls : uint8_t {
  // To compute, and to read and write what is open: no file is opened (the attempt fails
  // with EACCES), no process, thread or socket is made, no memory becomes code.
  kUseWhatIsOpen,
  // The same, but opening a file raises SIGSYS, whose handler may get it from somebody
  // else, by messages over a descriptor.
  kUseWhatIsOpenAndAsk,
  // Also threads, terminals, sleeping and ending children.
  kUseWhatIsOpenInThreads,
};

// From now on any other system call ends the process with SIGSYS; for all threads.
// Includes ForbidNewPrivileges. `also`: numbers of more calls that are allowed.
// kUnavailable: this kernel has no system call filters.
Status RestrictSystemCalls(SystemCalls allowed, std::span<const uint32_t> also = {});

// All of the above for a process that only reads `kept` descriptors and writes to them:
// for root it becomes the user nobody. Without CAP_SETUID, CAP_SETGID and CAP_KILL, or in
// a user namespace that has no such user, its uid stays. Where the kernel has no system
// call filters, only a process of root refuses.
Status BecomeReader(std::span<const int> kept, SystemCalls allowed);

}  // namespace heapprofd
