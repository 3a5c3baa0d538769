// Tables over call trees: the columns that all of them have, and those that each adds.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "query/flame_tree.h"
#include "query/sqlite/columns.h"
#include "query/sqlite/virtual_table.h"

namespace heapprofd {

using MadeTable = Result<std::shared_ptr<const Table>>;

// Columns of one node's data.

inline TableColumn NodeId(const FlameTree& tree) {
  TableColumn column = NumberColumn(
      "id", [&tree](size_t row) { return tree.IdOf(static_cast<uint32_t>(row)); });
  column.order = ColumnOrder::kAscending;
  return column;
}

inline TableColumn NodeParent(const FlameTree& tree) {
  return IdColumn("parent_id", [&tree](size_t row) {
    const uint32_t parent = tree.nodes[row].parent;
    return parent == kNoId ? kNoId : tree.IdOf(parent);
  });
}

inline TableColumn NodeDepth(const FlameTree& tree) {
  return NumberColumn("depth", [&tree](size_t row) { return tree.depths[row]; });
}

inline TableColumn NodeName(const FlameTree& tree) {
  return TableColumn::Computed("name", ColumnType::kText, [&tree](size_t row) {
    return Cell::Text(tree.NameOf(row));
  });
}

inline TableColumn NodeMapping(std::string_view name,
                               const ImportedTrace& trace,
                               const FlameTree& tree) {
  return TextColumn(name, trace,
                    [&tree](size_t row) { return tree.FunctionOf(row).mapping_name; });
}

inline TableColumn NodeSourceFile(const ImportedTrace& trace, const FlameTree& tree) {
  return TextColumn("source_file", trace,
                    [&tree](size_t row) { return tree.FunctionOf(row).source_file; });
}

inline TableColumn NodeLine(const FlameTree& tree) {
  return NumberColumn("line_number", [&tree](size_t row) -> std::optional<uint32_t> {
    const uint32_t line = tree.FunctionOf(row).line;
    if (line == 0)
      return std::nullopt;
    return line;
  });
}

// The values of a figure: at the node itself, and there and below.

using FlameFigure = int64_t FlameValues::*;

inline TableColumn NodeSelf(std::string_view name,
                            const FlameTree& tree,
                            FlameFigure figure) {
  return NumberColumn(name,
                      [&tree, figure](size_t row) { return tree.SelfOf(row).*figure; });
}

inline TableColumn NodeCumulative(std::string_view name,
                                  const FlameTree& tree,
                                  FlameFigure figure) {
  return NumberColumn(
      name, [&tree, figure](size_t row) { return tree.CumulativeOf(row).*figure; });
}

// A figure's two columns.
struct NamedFigure {
  const char* self_name;
  const char* cumulative_name;
  FlameFigure figure;
};

// A table that owns its tree. `columns` makes its columns from the tree at its final
// place.
template <typename MakeColumns>
Table TreeTable(FlameTree made, MakeColumns columns) {
  auto storage = std::make_shared<const FlameTree>(std::move(made));
  Table table;
  table.row_count = storage->nodes.size();
  table.columns = columns(*storage);
  table.storage = std::move(storage);
  return table;
}

inline void AddFigures(const FlameTree& tree,
                       std::span<const NamedFigure> figures,
                       std::vector<TableColumn>* columns) {
  for (const NamedFigure& named : figures) {
    columns->push_back(NodeSelf(named.self_name, tree, named.figure));
    columns->push_back(NodeCumulative(named.cumulative_name, tree, named.figure));
  }
}

// A function whose columns are those of `table`, which need not have rows.
inline TableFunction FunctionWithColumnsOf(std::string name, const Table& table) {
  TableFunction function;
  function.name = std::move(name);
  function.columns = SpecOf(table);
  return function;
}

}  // namespace heapprofd
