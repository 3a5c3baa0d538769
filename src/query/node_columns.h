// Columns over the nodes of a call tree.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "query/columns.h"
#include "query/flame_tree.h"

namespace heapprofd {

inline TableColumn NodeId(std::string_view name, const FlameTree& tree) {
  TableColumn column =
      NumberColumn(name, [&tree](size_t row) { return tree.nodes[row].id; });
  column.order = ColumnOrder::kAscending;
  return column;
}

inline TableColumn NodeParent(const FlameTree& tree) {
  return IdColumn("parent_id", [&tree](size_t row) {
    const uint32_t parent = tree.nodes[row].parent;
    return parent == kNoId ? kNoId : tree.nodes[parent].id;
  });
}

inline TableColumn NodeName(const FlameTree& tree) {
  return TableColumn::Computed("name", ColumnType::kText, [&tree](size_t row) {
    return Cell::Text(tree.nodes[row].name);
  });
}

inline TableColumn NodeMapping(std::string_view name,
                               const ImportedTrace& trace,
                               const FlameTree& tree) {
  return TextColumn(std::string(name), trace,
                    [&tree](size_t row) { return tree.nodes[row].mapping_name; });
}

inline TableColumn NodeSourceFile(const ImportedTrace& trace, const FlameTree& tree) {
  return TextColumn("source_file", trace,
                    [&tree](size_t row) { return tree.nodes[row].source_file; });
}

inline TableColumn NodeLine(const FlameTree& tree) {
  return NumberColumn("line_number", [&tree](size_t row) -> std::optional<uint32_t> {
    const uint32_t line = tree.nodes[row].line;
    if (line == 0)
      return std::nullopt;
    return line;
  });
}

using FlameFigure = int64_t FlameValues::*;

inline TableColumn NodeSelf(std::string_view name,
                            const FlameTree& tree,
                            FlameFigure figure) {
  return NumberColumn(
      name, [&tree, figure](size_t row) { return tree.nodes[row].self.*figure; });
}

inline TableColumn NodeCumulative(std::string_view name,
                                  const FlameTree& tree,
                                  FlameFigure figure) {
  return NumberColumn(
      name, [&tree, figure](size_t row) { return tree.nodes[row].cumulative.*figure; });
}

}  // namespace heapprofd
