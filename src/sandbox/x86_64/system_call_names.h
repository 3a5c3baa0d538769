// x86-64: the calls of system_calls.cc that other architectures have under another name
// only, and what the kernel calls the architecture.
#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>
#include <initializer_list>

namespace heapprofd {

inline constexpr uint32_t kAuditArchitecture = AUDIT_ARCH_X86_64;
// From here on numbers are calls of another kind: those of x32.
inline constexpr uint32_t kFirstForeignCall = 0x40000000;

inline constexpr std::initializer_list<uint32_t> kOldAlways = {SYS_poll};
inline constexpr std::initializer_list<uint32_t> kOldForThreads = {SYS_pause, SYS_select};
inline constexpr std::initializer_list<uint32_t> kOldRefused = {
    SYS_open, SYS_access, SYS_stat, SYS_lstat, SYS_readlink, SYS_unlink, SYS_rename};
inline constexpr uint32_t kReadLinkCall = SYS_readlink;  // libc's readlink
inline constexpr std::initializer_list<uint32_t> kOldPipe = {SYS_pipe};

}  // namespace heapprofd
