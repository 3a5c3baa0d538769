// aarch64: has none of the calls that newer ones with `at`, or with more parameters, do
// for.
#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>
#include <initializer_list>

namespace heapprofd {

inline constexpr uint32_t kAuditArchitecture = AUDIT_ARCH_AARCH64;
inline constexpr uint32_t kFirstForeignCall = ~uint32_t{0};  // there are none

inline constexpr std::initializer_list<uint32_t> kOldAlways = {};
inline constexpr std::initializer_list<uint32_t> kOldForThreads = {};
inline constexpr std::initializer_list<uint32_t> kOldRefused = {
    SYS_unlinkat, SYS_renameat, SYS_renameat2};
inline constexpr uint32_t kReadLinkCall = SYS_readlinkat;  // libc's readlink
inline constexpr std::initializer_list<uint32_t> kOldPipe = {};

}  // namespace heapprofd
