#include "profile/block_shapes.h"

#include <algorithm>
#include <bit>

namespace heapprofd {
namespace {

constexpr int kKindShift = 8;
constexpr int kCallsiteShift = 16;

uint64_t Log2(uint64_t value) {
  return static_cast<uint64_t>(value == 0 ? 0 : std::bit_width(value) - 1);
}

uint64_t KeyOf(CallsiteId callsite, ShapeKind kind, uint64_t log2) {
  return uint64_t{callsite} << kCallsiteShift |
         static_cast<uint64_t>(kind) << kKindShift | log2;
}

Estimate Negative(const Estimate& estimate) {
  return Estimate() - estimate;
}

}  // namespace

Estimate TemporaryBlocks(const HeapDump& dump) {
  Estimate sum;
  for (const ShapeRow& row : dump.shapes) {
    if (row.kind == ShapeKind::kTemporary)
      sum += row.estimate;
  }
  return sum;
}

void SortShapes(std::vector<ShapeRow>* rows) {
  std::ranges::sort(*rows, {}, [](const ShapeRow& row) {
    return KeyOf(row.callsite, row.kind, row.log2);
  });
}

void BlockShapes::Add(CallsiteId callsite,
                      ShapeKind kind,
                      uint64_t value,
                      const Estimate& estimate) {
  const uint64_t key = KeyOf(callsite, kind, Log2(value));
  if (Estimate* sum = sums_.Find(key))
    *sum += estimate;
  else if (sums_.size() < kMaxSums)
    sums_.Insert(key, estimate);
  else
    ++left_out_;
}

void BlockShapes::Allocate(CallsiteId callsite, uint64_t size, const Estimate& estimate) {
  Add(callsite, ShapeKind::kAllocatedSize, size, estimate);
}

void BlockShapes::Free(CallsiteId callsite,
                       const End& end,
                       const Estimate& estimate,
                       double sign) {
  if (end.lived_ns == 0)
    return;
  const Estimate change = sign < 0 ? Negative(estimate) : estimate;
  Add(callsite, ShapeKind::kLifetime, end.lived_ns, change);
  if (end.is_temporary)
    Add(callsite, ShapeKind::kTemporary, 0, change);
}

void BlockShapes::AddLive(CallsiteId callsite,
                          uint64_t size,
                          uint64_t age_ns,
                          const Estimate& estimate) {
  Add(callsite, ShapeKind::kLiveSize, size, estimate);
  Add(callsite, ShapeKind::kAge, age_ns, estimate);
}

void BlockShapes::AppendTo(std::vector<ShapeRow>* rows) const {
  rows->reserve(rows->size() + sums_.size());
  sums_.ForEach([rows](uint64_t key, const Estimate& estimate) {
    if (estimate.count <= 0)  // all of them were taken back
      return;
    rows->push_back({.callsite = static_cast<CallsiteId>(key >> kCallsiteShift),
                     .kind = static_cast<ShapeKind>(key >> kKindShift & 0xff),
                     .log2 = static_cast<uint8_t>(key & 0xff),
                     .estimate = estimate});
  });
}

}  // namespace heapprofd
