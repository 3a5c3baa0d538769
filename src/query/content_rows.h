// The rows of heap_graph_object_data and heap_graph_primitive: first those of heap dumps,
// a row for each object and for each field that is a number, then those of traces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tables/imported_trace.h"
#include "tables/object_contents.h"

namespace heapprofd {

// Of the graphs that are of heap dumps, in their order.
using ContentsOfGraphs = std::vector<std::shared_ptr<ObjectContents>>;

struct ObjectAt {
  const ObjectContents* contents;
  uint32_t object;  // of it
};

struct FieldAt {
  const ObjectContents* contents;
  uint64_t field;  // of it
};

// The row of heap_graph_object_data that is an object's; nullopt: it has none.
std::optional<uint64_t> ObjectDataRowOf(const HeapGraphTables& tables, uint32_t object);

class ContentRows {
 public:
  // nullptr: no rows.
  ContentRows(const ImportedTrace* trace, ContentsOfGraphs contents)
      : trace_(trace), contents_(std::move(contents)) {}

  // Before the others, but usual_rows().
  Status Load();

  // For the planner.
  uint64_t usual_rows() const { return trace_->heap_graph.objects.row_count(); }

  const ImportedTrace& trace() const { return *trace_; }

  uint64_t object_rows() const { return object_rows_; }

  uint64_t field_rows() const { return field_rows_; }

  // Of rows of either table. nullopt: it is of a trace, or there is no such row.
  std::optional<ObjectAt> ObjectIn(uint64_t row) const;
  std::optional<FieldAt> FieldIn(uint64_t row) const;

  // When it is of a trace.
  const HeapPrimitive& PrimitiveIn(uint64_t row) const {
    return trace_->heap_graph.primitives[row - contents_fields_];
  }

  // The set of an object's fields; nullopt: it has none that is a number.
  std::optional<uint64_t> SetOfObject(uint64_t row) const;
  uint64_t SetOfField(uint64_t row) const;

 private:
  const ImportedTrace* trace_;
  ContentsOfGraphs contents_;
  uint64_t object_rows_ = 0;
  uint64_t field_rows_ = 0;
  uint64_t contents_objects_ = 0;  // of these rows
  uint64_t contents_fields_ = 0;
  std::vector<uint64_t> first_fields_;  // by graph that has contents
};

}  // namespace heapprofd
