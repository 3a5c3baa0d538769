// Addresses at which no code was found, and for which of them that is certain: the maps
// were read after they had been asked for.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace heapprofd {

class VainLookups {
 public:
  // The maps have been read once more.
  void NoteReading() { ++readings_; }

  uint64_t readings() const { return readings_; }

  // `pc` is not known.
  void Ask(uint64_t pc);

  // The maps were not read for that.
  void Postpone() { ++postponed_; }

  uint64_t postponed() const { return postponed_; }

  // Now it is known.
  void Find(uint64_t pc) { asked_.erase(pc); }

  bool IsCertain(uint64_t pc) const { return certain_.contains(pc); }

  // Whether the maps have been read since `pc` was asked for: then it is certain from now
  // on. So many are kept; the rest stays uncertain.
  bool Conclude(uint64_t pc);

  // Code lies from `start` to `end` now: whether that was certainly not so. What else was
  // certain is not any more, either.
  bool Contradict(uint64_t start, uint64_t end);

  // Keeps the numbers only.
  void ForgetAddresses();

 private:
  std::map<uint64_t, uint64_t> asked_;  // by address: readings_ then
  std::set<uint64_t> certain_;
  uint64_t readings_ = 0;
  uint64_t postponed_ = 0;
};

}  // namespace heapprofd
