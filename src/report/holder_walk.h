// Whom a Java object belongs to: up the tree of those that hold one another alone, to the
// first that is not of Java's own classes. What is known of holders that have been passed
// is kept: buffers in one long list would walk all of it each.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

// Whom owners are called that no class names.
inline constexpr char kHeldByNobody[] = "nobody: they are garbage";
inline constexpr char kHeldBySeveral[] = "several at once";

// Of Java's own classes and of arrays, which hold things for others.
bool IsLibraryClass(std::string_view name);

// Name: what a class's name is kept as, made of a literal, too.
template <typename Name>
class HolderWalk {
 public:
  // Of an object. `parent_of`: who holds it alone; kNoId: nobody does.
  using ParentOf = std::function<uint32_t(uint32_t)>;
  using NameOf = std::function<Name(uint32_t)>;  // of its class

  HolderWalk(ParentOf parent_of, NameOf name_of)
      : parent_of_(std::move(parent_of)), name_of_(std::move(name_of)) {}

  // The nearest that holds `object`, which is no garbage, alone and is not of Java's own
  // classes; else the outermost.
  Name OwnerOf(uint32_t object) {
    Name name = kHeldBySeveral;
    passed_.clear();
    for (uint32_t at = parent_of_(object); at != kNoId; at = parent_of_(at)) {
      if (const auto known = known_.find(at); known != known_.end()) {
        name = known->second;
        break;
      }
      passed_.push_back(at);
      name = name_of_(at);
      if (!IsLibraryClass(name))
        break;
    }
    for (const uint32_t at : passed_)
      known_[at] = name;
    return name;
  }

 private:
  ParentOf parent_of_;
  NameOf name_of_;
  std::unordered_map<uint32_t, Name> known_;  // by holder
  std::vector<uint32_t> passed_;
};

}  // namespace heapprofd
