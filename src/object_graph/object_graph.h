// Objects, their types, the references between them, and what holds them from outside:
// the heap of any program. Where ids, types and roots come from is the business of the
// importers; here they are numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/column.h"
#include "object_graph/kept_objects.h"

namespace heapprofd {

inline constexpr uint32_t kNoObject = UINT32_MAX;

struct ObjectType {
  std::string name;
  // The object that stands for the type at run time and that all of its objects hold;
  // kNoObject: there is none.
  uint32_t object = kNoObject;
};

struct GraphRoot {
  uint32_t object;
  uint32_t kind;  // as the importer numbers them
};

// About 17 bytes per object and 4 1/8 per reference. References of an object to that of
// its type take none.
class ObjectGraph {
 public:
  explicit ObjectGraph(uint32_t object_count);

  // One of which only types, sizes and what was found of it are known, and no references.
  explicit ObjectGraph(std::shared_ptr<const KeptObjects> kept);

  uint32_t AddType(std::string name, uint32_t object = kNoObject);

  void AddRoot(uint32_t object, uint32_t kind) { roots_.push_back({object, kind}); }

  void SetObject(uint32_t object, uint32_t type, uint64_t size);

  // References of one object are added one behind the other, and End() behind the last.
  void AddReference(uint32_t target) { targets_.push_back(target); }

  void EndReferences(uint32_t owner);

  // For the memory of what will be added.
  void ReserveReferences(size_t count);

  uint32_t object_count() const {
    return kept_ == nullptr ? static_cast<uint32_t>(type_.size()) : kept_->count;
  }

  // Null: it is a whole graph.
  const std::shared_ptr<const KeptObjects>& kept() const { return kept_; }

  size_t reference_count() const { return targets_.size() - 1; }

  const std::vector<ObjectType>& types() const { return types_; }

  const std::vector<GraphRoot>& roots() const { return roots_; }

  uint32_t TypeOf(uint32_t object) const {
    return kept_ == nullptr ? type_[object] : kept_->TypeOf(object);
  }

  uint64_t SizeOf(uint32_t object) const {
    if (kept_ != nullptr)
      return kept_->SizeOf(object);
    return size_[object] != kLarge ? size_[object] : large_sizes_.at(object);
  }

  // The object of its type, when it holds one.
  uint32_t TypeObjectOf(uint32_t object) const { return types_[TypeOf(object)].object; }

  // A position in the references of an object: 0 is behind the last one.
  uint64_t FirstReference(uint32_t object) const {
    return first_low_[object] |
           (first_high_.empty() ? 0 : uint64_t{first_high_[object]} << 32);
  }

  uint32_t Target(uint64_t position) const { return targets_[position]; }

  uint64_t NextReference(uint64_t position) const {
    return (is_last_[position / 64] >> (position % 64) & 1) != 0 ? 0 : position + 1;
  }

  // use(target), without the object of its type.
  template <typename Use>
  void ForEachReference(uint32_t object, Use use) const {
    for (uint64_t at = FirstReference(object); at != 0; at = NextReference(at))
      use(Target(at));
  }

 private:
  static constexpr uint32_t kLarge = UINT32_MAX;

  std::vector<ObjectType> types_;
  std::vector<GraphRoot> roots_;
  Column<uint32_t> type_;
  Column<uint32_t> size_;
  std::unordered_map<uint32_t, uint64_t> large_sizes_;  // where size_ is kLarge
  Column<uint32_t> first_low_;
  Column<uint8_t> first_high_;               // empty while references are fewer than 2^32
  Column<uint32_t> targets_;                 // 0 is unused
  Column<uint64_t> is_last_;                 // a bit for each of targets_
  uint64_t begin_ = 1;                       // of the references that are being added
  std::shared_ptr<const KeptObjects> kept_;  // instead of the columns
};

}  // namespace heapprofd
