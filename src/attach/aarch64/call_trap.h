// aarch64: attach/start/start_trap.cc.
#pragma once

#include <array>
#include <cstdint>

namespace heapprofd {

// A function that calls getpid(2), and nothing else.
inline constexpr std::array<uint8_t, 12> kCallTrap = {
    0x88, 0x15, 0x80, 0xd2,  // mov x8, #getpid
    0x01, 0x00, 0x00, 0xd4,  // svc #0
    0xc0, 0x03, 0x5f, 0xd6   // ret
};
inline constexpr uint64_t kBehindTrappedCall = 8;  // from its begin, bytes

}  // namespace heapprofd
