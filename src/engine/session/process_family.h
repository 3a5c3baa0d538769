// The descendants of a process, as /proc tells.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace heapprofd {

inline constexpr size_t kMaxFamily = 10'000;  // descendants that are looked at

struct Relative {
  pid_t pid;
  uint64_t start;  // of the process, in clock ticks
};

// Its children first; without those whose parent has ended. A process can have
// many thousand threads, each with children: they are read apart
// (attach/apart.h), and `between` is called meanwhile. Empty also when that did
// not come to an end.
std::vector<Relative> FamilyOf(pid_t pid, const std::function<void()>& between);

// The processes of these threads; those that have ended are missing. As above.
std::vector<Relative> ProcessesOf(const std::vector<pid_t>& threads,
                                  const std::function<void()>& between);

}  // namespace heapprofd
