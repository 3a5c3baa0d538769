// What is known of the objects of an examined heap, as a file has it that is read where it
// lies (hprof/index): about 15 bytes for each. Such bytes may be anybody's, and may
// change: each answer is in range whatever they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace heapprofd {

// Instead of an object's immediate dominator, or of the one above it on the nearest way:
inline constexpr uint32_t kHeldByRoots = UINT32_MAX;      // a root, or held by several
inline constexpr uint32_t kUnreachable = UINT32_MAX - 1;  // nothing holds it

// Type and size: few combinations are there in a heap.
struct ObjectShape {
  uint64_t size;
  uint32_t type;
  uint32_t unused;
};

struct LargeNumber {
  uint64_t number;
  uint32_t object;
  uint32_t unused;
};

class KeptObjects {
 public:
  static constexpr uint32_t kLarge = UINT32_MAX;  // in `retained`: it is in `large`

  uint32_t TypeOf(uint32_t object) const {
    const uint32_t type = ShapeOf(object).type;
    return type < type_count ? type : 0;
  }

  uint64_t SizeOf(uint32_t object) const { return ShapeOf(object).size; }

  uint32_t DominatorOf(uint32_t object) const { return Checked(dominators[object]); }

  // On the nearest way from a root.
  uint32_t Above(uint32_t object) const { return Checked(above[object]); }

  uint64_t RetainedBy(uint32_t object) const {
    const uint32_t bytes = retained[object];
    return bytes != kLarge ? bytes : LargeOf(object);
  }

  uint32_t count = 0;
  uint32_t type_count = 0;  // at least 1 where there are objects
  uint64_t reachable_count = 0;
  uint64_t reachable_bytes = 0;
  std::span<const ObjectShape> shapes;
  std::span<const uint16_t> narrow;  // by object: its shape; or, where there are many,
  std::span<const uint32_t> wide;    // these. One of them is empty.
  std::span<const uint32_t> dominators;
  std::span<const uint32_t> above;
  std::span<const uint32_t> retained;
  std::span<const LargeNumber> large;  // by object

 private:
  ObjectShape ShapeOf(uint32_t object) const {
    const uint32_t shape = narrow.empty() ? wide[object] : narrow[object];
    return shape < shapes.size() ? shapes[shape] : ObjectShape{};
  }

  uint32_t Checked(uint32_t number) const {
    return number < count || number == kHeldByRoots ? number : kUnreachable;
  }

  uint64_t LargeOf(uint32_t object) const {
    const auto found = std::ranges::lower_bound(large, object, {}, &LargeNumber::object);
    return found != large.end() && found->object == object ? found->number : kLarge;
  }
};

}  // namespace heapprofd
