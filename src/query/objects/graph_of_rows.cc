#include "query/objects/graph_of_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "profile/java_classes.h"
#include "query/objects/object_tree.h"

namespace heapprofd {
namespace {

class RowLoader {
 public:
  RowLoader(const ImportedTrace& trace,
            std::span<const HeapClassKind> weak,
            GraphOfRows* heap)
      : trace_(trace),
        tables_(trace.heap_graph),
        weak_(weak),
        heap_(*heap),
        graph_(heap->graph),
        types_(tables_.classes.size(), GraphOfRows::kNoRow),
        native_types_(tables_.classes.size(), GraphOfRows::kNoRow) {}

  void Load() {
    for (uint32_t object = 0; object < heap_.row_count; ++object)
      AddObject(object);
    for (uint32_t i = 0; i < heap_.owner_of_native.size(); ++i) {
      const uint32_t row = heap_.RowOf(heap_.row_count + i);
      graph_.SetObject(heap_.row_count + i, NativeType(tables_.objects.type[row]),
                       static_cast<uint64_t>(tables_.objects.native_size[row]));
    }
  }

 private:
  std::string_view ShownName(uint32_t row) const {
    return trace_.Text(tables_.classes[row].ShownName());
  }

  uint32_t AddType(std::string_view name, uint32_t row) {
    heap_.class_of_type.push_back(row);
    return graph_.AddType(std::string(CutUtf8(name, kMostJavaNameBytes)));
  }

  uint32_t TypeOf(uint32_t row) {
    uint32_t& type = types_[row];
    if (type != GraphOfRows::kNoRow)
      return type;
    const std::string_view name = ShownName(row);
    if (name != kClassClass && DescribedClass(name).empty())
      return type = AddType(name, row);
    if (heap_.type_of_classes == GraphOfRows::kNoRow)
      heap_.type_of_classes = AddType(kClassClass, GraphOfRows::kNoRow);
    return type = heap_.type_of_classes;
  }

  uint32_t NativeType(uint32_t row) {
    uint32_t& type = native_types_[row];
    if (type == GraphOfRows::kNoRow)
      type =
          AddType("[native] " + std::string(CutUtf8(ShownName(row), kMostJavaNameBytes)),
                  GraphOfRows::kNoRow);
    return type;
  }

  void AddObject(uint32_t object) {
    const HeapObjectTable& rows = tables_.objects;
    const uint32_t row = heap_.first_row + object;
    graph_.SetObject(object, TypeOf(rows.type[row]),
                     static_cast<uint64_t>(std::max<int64_t>(rows.self_size[row], 0)));
    if (rows.root_type[row] != HeapRootType::kNone)
      graph_.AddRoot(object, static_cast<uint32_t>(rows.root_type[row]));
    AddReferences(row);
    const uint32_t native =
        heap_.row_count + static_cast<uint32_t>(heap_.owner_of_native.size());
    if (rows.native_size[row] > 0 && native < graph_.object_count()) {
      graph_.AddReference(native);
      heap_.owner_of_native.push_back(object);
    }
    graph_.EndReferences(object);
  }

  void AddReferences(uint32_t row) {
    const uint32_t first = tables_.objects.first_reference[row];
    const uint32_t count = first == kNoId ? 0 : tables_.objects.reference_count[row];
    const bool is_weak =
        std::ranges::count(weak_, tables_.classes[tables_.objects.type[row]].kind) > 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t target = heap_.ObjectOf(tables_.references.owned[first + i]);
      if (target != kNoObject && !(is_weak && IsReferent(trace_, first + i)))
        graph_.AddReference(target);
    }
  }

  const ImportedTrace& trace_;
  const HeapGraphTables& tables_;
  const std::span<const HeapClassKind> weak_;
  GraphOfRows& heap_;
  ObjectGraph& graph_;
  std::vector<uint32_t> types_;  // by row of a class
  std::vector<uint32_t> native_types_;
};

// What there are numbers for.
uint32_t NativeCount(const HeapObjectTable& objects, const ImportedHeapGraph& graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph.object_count; ++i)
    count += objects.native_size[graph.first_object + i] > 0 ? 1u : 0u;
  return std::min(count, kNoObject - 2 - std::min(graph.object_count, kNoObject - 2));
}

}  // namespace

GraphOfRows LoadGraphOfRows(const ImportedTrace& trace,
                            uint32_t row,
                            std::span<const HeapClassKind> weak) {
  const ImportedHeapGraph& graph = trace.heap_graph.graphs[row];
  GraphOfRows heap{.first_row = graph.first_object,
                   .row_count = graph.object_count,
                   .owner_of_native = {},
                   .class_of_type = {},
                   .graph = ObjectGraph(graph.object_count +
                                        NativeCount(trace.heap_graph.objects, graph))};
  RowLoader(trace, weak, &heap).Load();
  return heap;
}

std::string_view ClassStoodFor(const ImportedTrace& trace, uint32_t row) {
  const uint32_t type = trace.heap_graph.objects.type[row];
  return CutUtf8(DescribedClass(trace.Text(trace.heap_graph.classes[type].ShownName())),
                 kMostJavaNameBytes);
}

}  // namespace heapprofd
