// How the objects of a dump of HotSpot were laid out. The dump does not tell; what lies side
// by side in memory does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "hprof/class_table.h"
#include "hprof/heap_walk.h"

namespace heapprofd::hprof {

// How virtual machines lay objects out.
inline constexpr ObjectLayout kLayouts[] = {
    {4, 12, 16},  // compressed references and class pointers
    {8, 12, 16},  // only the latter
    {8, 16, 24},  // neither
    {4, 16, 24},  // only the former
    {4, 16, 20},  // since JDK 23 elements follow the length at once: only the former
    {8, 16, 20},  // neither
    {4, 8, 12},   // since JDK 24, -XX:+UseCompactObjectHeaders
    {8, 8, 12},
};
inline constexpr size_t kLayoutCount = std::size(kLayouts);

// Concludes from neighbours in memory how objects are laid out: a virtual machine that
// has just collected garbage leaves no gaps between arrays and what comes behind them.
class LayoutEvidence {
 public:
  explicit LayoutEvidence(uint64_t alignment) : alignment_(alignment) {}

  // Every object, in the order of the file.
  void Object(uint64_t id) {
    all_ids_ |= id;
    if (previous_ == 0)
      return;
    for (size_t i = 0; i < kLayoutCount; ++i)
      votes_[i] += static_cast<uint64_t>(id - previous_ == bytes_[i]);
    previous_ = 0;
  }

  // Behind Object(id).
  void Array(uint64_t id, uint64_t length, uint32_t element_bytes, bool are_references) {
    if (length < kLeastLength || seen_ == kEnough)
      return;
    ++seen_;
    previous_ = id;
    for (size_t i = 0; i < kLayoutCount; ++i) {
      const ObjectLayout& layout = kLayouts[i];
      bytes_[i] =
          Padded(layout.array_header_bytes +
                     length * (are_references ? layout.reference_bytes : element_bytes),
                 alignment_);
    }
  }

  // Of all objects: HotSpot's -XX:ObjectAlignmentInBytes.
  uint64_t Alignment() const {
    constexpr uint64_t kMostAlignment = 256;
    return std::clamp<uint64_t>(all_ids_ & -all_ids_, 8, kMostAlignment);
  }

  // nullopt: nothing speaks for one of them alone.
  std::optional<ObjectLayout> Best() const {
    const auto* const best = std::max_element(std::begin(votes_), std::end(votes_));
    if (*best == 0 || std::count(std::begin(votes_), std::end(votes_), *best) > 1)
      return std::nullopt;
    return kLayouts[best - std::begin(votes_)];
  }

 private:
  static constexpr uint64_t kLeastLength = 5;  // shorter ones differ in few layouts
  static constexpr uint64_t kEnough = 100'000;

  const uint64_t alignment_;
  uint64_t all_ids_ = 0;   // their bits
  uint64_t previous_ = 0;  // id of an array that was just seen
  uint64_t bytes_[kLayoutCount] = {};
  uint64_t votes_[kLayoutCount] = {};
  uint64_t seen_ = 0;
};

// Collectors that go along references (ZGC) dump in no order of addresses: of a few pages
// of memory the objects are put in order first. For WalkDump().
class AddressOrder {
 public:
  explicit AddressOrder(uint32_t id_bytes) : id_bytes_(id_bytes) {}

  void Root(const RootRecord&) {}

  void Class(const ClassRecord& record) { Add({.id = record.id}); }

  void Instance(const InstanceRecord& record) { Add({.id = record.id}); }

  void ObjectArray(const ObjectArrayRecord& record) {
    ChoosePageOf(record.id);
    Add({record.id, record.length, 0, true, true});
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    Add({record.id, record.length, ValueBytes(record.type, id_bytes_), true, false});
  }

  LayoutEvidence Evidence(uint64_t alignment) {
    std::ranges::sort(objects_, {}, &Object::id);
    LayoutEvidence evidence(alignment);
    for (const Object& object : objects_) {
      evidence.Object(object.id);
      if (object.is_array)
        evidence.Array(object.id, object.length, object.element_bytes,
                       object.has_references);
    }
    return evidence;
  }

 private:
  static constexpr uint32_t kPageBits = 21;  // the smallest pages of ZGC
  static constexpr size_t kMostPages = 16;
  static constexpr size_t kMostObjects = 1'000'000;

  struct Object {
    uint64_t id = 0;
    uint32_t length = 0;
    uint32_t element_bytes = 0;
    bool is_array = false;
    bool has_references = false;
  };

  bool IsChosen(uint64_t id) const {
    return std::find(pages_.begin(), pages_.begin() + page_count_, id >> kPageBits) !=
           pages_.begin() + page_count_;
  }

  // Arrays of references show more than others.
  void ChoosePageOf(uint64_t id) {
    if (page_count_ < kMostPages && !IsChosen(id))
      pages_[page_count_++] = id >> kPageBits;
  }

  void Add(const Object& object) {
    if (objects_.size() < kMostObjects && IsChosen(object.id))
      objects_.push_back(object);
  }

  const uint32_t id_bytes_;
  std::array<uint64_t, kMostPages> pages_ = {};
  size_t page_count_ = 0;
  std::vector<Object> objects_;
};

}  // namespace heapprofd::hprof
