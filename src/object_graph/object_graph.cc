#include "object_graph/object_graph.h"

#include <utility>

namespace heapprofd {

ObjectGraph::ObjectGraph(uint32_t object_count) {
  type_.ReserveForRandomAccess(object_count);
  type_.resize(object_count, 0);
  size_.ReserveForRandomAccess(object_count);
  size_.resize(object_count, 0);
  first_low_.ReserveForRandomAccess(object_count);
  first_low_.resize(object_count, 0);
  targets_.push_back(kNoObject);
}

ObjectGraph::ObjectGraph(std::shared_ptr<const KeptObjects> kept)
    : kept_(std::move(kept)) {
  targets_.push_back(kNoObject);
}

uint32_t ObjectGraph::AddType(std::string name, uint32_t object) {
  types_.push_back({std::move(name), object});
  return static_cast<uint32_t>(types_.size() - 1);
}

void ObjectGraph::SetObject(uint32_t object, uint32_t type, uint64_t size) {
  type_[object] = type;
  size_[object] = size < kLarge ? static_cast<uint32_t>(size) : kLarge;
  if (size >= kLarge)
    large_sizes_[object] = size;
}

void ObjectGraph::ReserveReferences(size_t count) {
  targets_.ReserveForRandomAccess(count + 1);
}

void ObjectGraph::EndReferences(uint32_t owner) {
  const uint64_t end = targets_.size();
  if (end == begin_)
    return;
  if (begin_ > UINT32_MAX && first_high_.empty())
    first_high_.resize(object_count(), 0);
  first_low_[owner] = static_cast<uint32_t>(begin_);
  if (!first_high_.empty())
    first_high_[owner] = static_cast<uint8_t>(begin_ >> 32);
  if (is_last_.size() <= (end - 1) / 64)
    is_last_.resize((end - 1) / 64 + 1, 0);
  is_last_[(end - 1) / 64] |= uint64_t{1} << ((end - 1) % 64);
  begin_ = end;
}

}  // namespace heapprofd
