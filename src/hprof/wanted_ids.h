// For walks that look for a few of many objects: tells at once of most ids that they are
// not looked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heapprofd::hprof {

class IdFilter {
 public:
  void Add(uint64_t id) { may_have_[SlotOf(id)] = true; }

  bool MayHave(uint64_t id) const { return may_have_[SlotOf(id)]; }

 private:
  static constexpr size_t kSlots = 4096;

  static size_t SlotOf(uint64_t id) { return (id >> 3 ^ id >> 15) % kSlots; }

  std::array<bool, kSlots> may_have_{};
};

}  // namespace heapprofd::hprof
