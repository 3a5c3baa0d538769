// What the blocks of each callsite are like, beside how many there are: how large they
// are, how long they live, how old those are that live on, and which are temporary. Sums
// of estimates by powers of two, so each is unbiased as the totals are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "profile/model.h"

namespace heapprofd {

// Blocks that the thread which allocated them frees so soon are temporary: memory on the
// stack, or one buffer for all of them, would have done.
inline constexpr uint64_t kTemporaryNs = 1'000'000;

// All temporary blocks of a dump that has shapes.
Estimate TemporaryBlocks(const HeapDump& dump);

// In the order of their members.
void SortShapes(std::vector<ShapeRow>* rows);

// Times are told in units of this, and 2^0 stands for less.
inline constexpr uint64_t kShortestTimeNs = 256;

class BlockShapes {
 public:
  // Who freed a block, and when; 0: nobody knows, and how long it lived is not counted.
  struct End {
    uint64_t lived_ns = 0;
    bool is_temporary = false;
  };

  // Where blocks come from. Of too many threads only the callsites are told apart, and of
  // too many callsites nothing.
  struct Origin {
    CallsiteId callsite = 0;  // kNoId: those that are not told apart
    ThreadId thread = kUnknownThread;
  };

  // `size`: bytes that were asked for.
  void Allocate(const Origin& origin, uint64_t size, const Estimate& estimate);

  // `sign` -1: it did not end after all.
  void Free(CallsiteId callsite, const End& end, const Estimate& estimate, double sign);

  // A block that is live now.
  void AddLive(const Origin& origin,
               uint64_t size,
               uint64_t age_ns,
               const Estimate& estimate);

  // Without order; appends.
  void AppendTo(std::vector<ShapeRow>* rows) const;

  // Sizes and times that are in the sums of no callsite, since there are too many of those.
  uint64_t left_out() const { return left_out_; }

  // What it takes of our memory, and what the next block may take beside that.
  size_t bytes() const { return sums_.bytes(); }

  size_t growth_bytes() const { return sums_.growth_bytes(); }

 private:
  static constexpr size_t kMaxSums = 262'144;
  // Beside those; beyond it sums of threads become those of their callsites. As many as
  // the table has room for then without growing.
  static constexpr size_t kMaxSumsWithThreads = 98'304;

  // Of what is not told apart there are few sums: one for each kind and power of two.
  bool HasRoom(const Origin& origin) const {
    if (origin.callsite == kNoId)
      return true;
    return origin.thread != kUnknownThread ? with_threads_ < kMaxSumsWithThreads
                                           : sums_.size() - with_threads_ < kMaxSums;
  }

  void Add(const Origin& origin,
           ShapeKind kind,
           uint64_t value,
           const Estimate& estimate);

  FlatMap<Estimate> sums_;   // by callsite, kind, power of two and thread
  size_t with_threads_ = 0;  // of them
  uint64_t left_out_ = 0;
};

}  // namespace heapprofd
