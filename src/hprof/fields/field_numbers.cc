#include "hprof/fields/field_numbers.h"

#include <algorithm>

namespace heapprofd::hprof {

FieldNumbers::FieldNumbers(const Column<uint32_t>& types,
                           uint32_t first_object,
                           uint32_t object_count,
                           uint32_t first_type,
                           std::vector<uint32_t> fields_of)
    : types_(types),
      first_object_(first_object),
      object_count_(object_count),
      first_type_(first_type),
      fields_of_(std::move(fields_of)) {
  for (uint32_t object = 0; object < object_count_; ++object) {
    if (object % kStep == 0)
      first_.push_back(count_);
    count_ += FieldsOf(object);
  }
}

uint64_t FieldNumbers::FirstOf(uint32_t object) const {
  if (object >= object_count_)
    return count_;
  if (object == last_object_)
    return last_first_;
  uint64_t first = first_[object / kStep];
  for (uint32_t at = object / kStep * kStep; at < object; ++at)
    first += FieldsOf(at);
  return first;
}

std::pair<uint32_t, uint32_t> FieldNumbers::OwnerOf(uint64_t field) const {
  // Within a step: many objects without any field may lie between two.
  const size_t next = last_object_ / kStep + 1;
  const bool is_near = last_first_ <= field && last_object_ < object_count_ &&
                       (next >= first_.size() || field < first_[next]);
  if (!is_near) {
    const uint64_t* const behind = std::upper_bound(first_.begin(), first_.end(), field);
    last_object_ = static_cast<uint32_t>(behind - first_.begin() - 1) * kStep;
    last_first_ = behind[-1];
  }
  while (field - last_first_ >= FieldsOf(last_object_)) {
    last_first_ += FieldsOf(last_object_);
    ++last_object_;
  }
  return {last_object_, static_cast<uint32_t>(field - last_first_)};
}

}  // namespace heapprofd::hprof
