#include "query/content_rows.h"

#include <algorithm>

namespace heapprofd {
namespace {

// Objects of graphs that have contents: those come first.
uint32_t ObjectsWithContents(const HeapGraphTables& tables) {
  uint32_t count = 0;
  for (const ImportedHeapGraph& graph : tables.graphs)
    count += graph.has_contents ? graph.object_count : 0;
  return count;
}

}  // namespace

std::optional<uint64_t> ObjectDataRowOf(const HeapGraphTables& tables, uint32_t object) {
  if (tables.graphs[tables.objects.graph[object]].has_contents)
    return object;
  const auto found =
      std::ranges::lower_bound(tables.object_data, object, {}, &HeapObjectData::object);
  if (found == tables.object_data.end() || found->object != object)
    return std::nullopt;
  return ObjectsWithContents(tables) +
         static_cast<uint64_t>(found - tables.object_data.begin());
}

Status ContentRows::Load() {
  const HeapGraphTables& tables = trace_->heap_graph;
  first_fields_.clear();
  contents_fields_ = 0;
  for (const std::shared_ptr<ObjectContents>& contents : contents_) {
    HPD_TRY(contents->Load());
    first_fields_.push_back(contents_fields_);
    contents_fields_ += contents->field_count();
  }
  contents_objects_ = ObjectsWithContents(tables);
  object_rows_ = contents_objects_ + tables.object_data.size();
  field_rows_ = contents_fields_ + tables.primitives.size();
  return {};
}

std::optional<ObjectAt> ContentRows::ObjectIn(uint64_t row) const {
  if (row >= contents_objects_)
    return std::nullopt;
  const HeapGraphTables& tables = trace_->heap_graph;
  const uint32_t graph = tables.objects.graph[row];
  return ObjectAt{contents_[graph].get(),
                  static_cast<uint32_t>(row - tables.graphs[graph].first_object)};
}

std::optional<FieldAt> ContentRows::FieldIn(uint64_t row) const {
  if (row >= contents_fields_)
    return std::nullopt;
  // Of several graphs that begin here the last one: those before have no field.
  const auto behind = std::upper_bound(first_fields_.begin(), first_fields_.end(), row);
  const auto graph = static_cast<size_t>(behind - first_fields_.begin() - 1);
  return FieldAt{contents_[graph].get(), row - first_fields_[graph]};
}

std::optional<uint64_t> ContentRows::SetOfObject(uint64_t row) const {
  const std::optional<ObjectAt> at = ObjectIn(row);
  const HeapGraphTables& tables = trace_->heap_graph;
  if (!at)
    return contents_fields_ + tables.object_data[row - contents_objects_].first_primitive;
  const uint64_t first = at->contents->FirstFieldOf(at->object);
  if (at->contents->FirstFieldOf(at->object + 1) == first)
    return std::nullopt;
  return first_fields_[tables.objects.graph[row]] + first;
}

uint64_t ContentRows::SetOfField(uint64_t row) const {
  const std::optional<FieldAt> at = FieldIn(row);
  if (!at)
    return contents_fields_ + PrimitiveIn(row).set;
  return row - at->field + at->contents->FirstFieldOf(at->contents->OwnerOf(at->field));
}

}  // namespace heapprofd
