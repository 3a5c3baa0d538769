// The fields of all objects of a graph, numbered through: objects in their order, with
// all of their fields each. Kept is one number for every 64 objects, as there may be more
// of them than there is memory for.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/column.h"

namespace heapprofd::hprof {

class FieldNumbers {
 public:
  // `types`: of all rows, the objects' from `first_object` on; they stay where they are.
  // `fields_of`: how many an object has, by its type less `first_type`.
  FieldNumbers(const Column<uint32_t>& types,
               uint32_t first_object,
               uint32_t object_count,
               uint32_t first_type,
               std::vector<uint32_t> fields_of);

  uint64_t count() const { return count_; }

  // Of an object; one behind the last has the number behind the last, too.
  uint64_t FirstOf(uint32_t object) const;

  // The object that a field, below count(), belongs to, and which of its fields it is.
  std::pair<uint32_t, uint32_t> OwnerOf(uint64_t field) const;

 private:
  static constexpr uint32_t kStep = 64;  // objects between two numbers of first_

  uint32_t FieldsOf(uint32_t object) const {
    return fields_of_[types_[first_object_ + object] - first_type_];
  }

  const Column<uint32_t>& types_;
  const uint32_t first_object_;
  const uint32_t object_count_;
  const uint32_t first_type_;
  const std::vector<uint32_t> fields_of_;
  Column<uint64_t> first_;  // of each kStep-th object
  uint64_t count_ = 0;
  // The last answer: rows are read in their order.
  mutable uint32_t last_object_ = 0;
  mutable uint64_t last_first_ = 0;  // its first field
};

}  // namespace heapprofd::hprof
