// x86-64: attach/start/start_trap.cc.
#pragma once

#include <array>
#include <cstdint>

namespace heapprofd {

// A function that calls getpid(2), and nothing else.
inline constexpr std::array<uint8_t, 8> kCallTrap = {0xb8, 39,   0, 0,
                                                     0,           // mov $getpid, %eax
                                                     0x0f, 0x05,  // syscall
                                                     0xc3};       // ret
inline constexpr uint64_t kBehindTrappedCall = 7;                 // from its begin, bytes

}  // namespace heapprofd
