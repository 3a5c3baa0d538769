// When a process's maps may be read again for an address that is not known. What a target
// can make this cost is bounded to a tenth of our time: 64,000 mappings are legal, and so
// are addresses that lie in none.
#pragma once

#include <cstdint>

namespace heapprofd {

class RefreshPause {
 public:
  bool IsOver(uint64_t now_ns) const { return now_ns >= until_ns_; }

  // A refresh has lasted from `begin_ns` to `end_ns`. `was_vain`: it did not help.
  void Note(uint64_t begin_ns, uint64_t end_ns, bool was_vain);

 private:
  // For opening what a program has when it begins: on a busy machine, or from a disk, that
  // takes as long, and what is looked up meanwhile has no name for good.
  static constexpr int64_t kFirstCreditNs = 500'000'000;

  uint64_t until_ns_ = 0;  // CLOCK_MONOTONIC
  int64_t first_credit_ns_ = kFirstCreditNs;
  int64_t credit_ns_ = 0;  // for refreshes that help
  uint64_t credited_ns_ = 0;
};

}  // namespace heapprofd
