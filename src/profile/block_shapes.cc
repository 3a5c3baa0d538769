#include "profile/block_shapes.h"

#include <algorithm>
#include <bit>

namespace heapprofd {
namespace {

constexpr int kLog2Shift = 16;  // above the thread: there are fewer
constexpr int kKindShift = 24;
constexpr int kCallsiteShift = 32;

uint64_t Log2(uint64_t value) {
  return static_cast<uint64_t>(value == 0 ? 0 : std::bit_width(value) - 1);
}

uint64_t KeyOf(const BlockShapes::Origin& origin, ShapeKind kind, uint64_t log2) {
  return uint64_t{origin.callsite} << kCallsiteShift |
         static_cast<uint64_t>(kind) << kKindShift | log2 << kLog2Shift |
         (origin.thread & 0xffff);
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
    return KeyOf({row.callsite, row.thread}, row.kind, row.log2);
  });
}

void BlockShapes::Add(const Origin& origin,
                      ShapeKind kind,
                      uint64_t value,
                      const Estimate& estimate) {
  const uint64_t key = KeyOf(origin, kind, Log2(value));
  const bool has_thread = origin.thread != kUnknownThread;
  if (Estimate* sum = sums_.Find(key)) {
    *sum += estimate;
  } else if (HasRoom(origin)) {
    sums_.Insert(key, estimate);
    with_threads_ += has_thread ? 1 : 0;
  } else if (has_thread) {
    Add({.callsite = origin.callsite}, kind, value, estimate);
  } else {
    ++left_out_;
    Add({.callsite = kNoId}, kind, value, estimate);
  }
}

void BlockShapes::Allocate(const Origin& origin,
                           uint64_t size,
                           const Estimate& estimate) {
  Add(origin, ShapeKind::kAllocatedSize, size, estimate);
}

void BlockShapes::Free(CallsiteId callsite,
                       const End& end,
                       const Estimate& estimate,
                       double sign) {
  if (end.lived_ns == 0)
    return;
  const Estimate change = sign < 0 ? Negative(estimate) : estimate;
  Add({.callsite = callsite}, ShapeKind::kLifetime, end.lived_ns, change);
  if (end.is_temporary)
    Add({.callsite = callsite}, ShapeKind::kTemporary, 0, change);
}

void BlockShapes::AddLive(const Origin& origin,
                          uint64_t size,
                          uint64_t age_ns,
                          const Estimate& estimate) {
  Add(origin, ShapeKind::kLiveSize, size, estimate);
  Add({.callsite = origin.callsite}, ShapeKind::kAge, age_ns, estimate);
}

void BlockShapes::AppendTo(std::vector<ShapeRow>* rows) const {
  rows->reserve(rows->size() + sums_.size());
  sums_.ForEach([rows](uint64_t key, const Estimate& estimate) {
    if (estimate.count <= 0)  // all of them were taken back
      return;
    rows->push_back({.callsite = static_cast<CallsiteId>(key >> kCallsiteShift),
                     .kind = static_cast<ShapeKind>(key >> kKindShift & 0xff),
                     .log2 = static_cast<uint8_t>(key >> kLog2Shift & 0xff),
                     .thread = static_cast<ThreadId>(key & 0xffff),
                     .estimate = estimate});
  });
}

}  // namespace heapprofd
