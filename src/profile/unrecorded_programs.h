// Programs that were started in a recording and are not in it, by the reason why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heapprofd {

// In traces as these numbers.
enum class UnrecordedReason : uint8_t {
  kStatic,
  k32Bit,
  kOtherMachine,  // a program for another architecture
  kPrivileged,
  kCleanedEnvironment,  // started without our variables
  kDeclined,            // it reported, and the engine could not take it
  kLate,                // it was gone, or had given up waiting, when the engine answered
  kConfined,            // a seccomp filter might have killed it for reporting
  kNoSpace,             // it could not map the memory that it was given
  kNotLoaded,           // none of these is known
  kOutOfReach,          // the engine's socket is not there for it, or not allowed
  kNoDescriptor,        // it had none left to ask the engine with
};

inline constexpr size_t kUnrecordedReasons = 12;

struct UnrecordedPrograms {
  UnrecordedReason reason = UnrecordedReason::kNotLoaded;
  uint64_t count = 0;
  std::vector<std::string> names;  // distinct, in order of appearance, a few only
};

}  // namespace heapprofd
