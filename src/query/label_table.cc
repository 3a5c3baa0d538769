// heap_profile_label: the labels that programs gave to their samples
// (heapprofd_label_push), which in traces are the outermost frames of a stack, of a
// mapping of their own.
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "profile/model.h"
#include "query/sqlite/columns.h"
#include "query/trace_tables.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxLabels = 16;  // of a callsite; clients write four

struct LabelRow {
  uint32_t callsite;
  uint32_t frame;  // its name is "key=value"
  uint32_t depth;  // 0: the outermost label
};

// Per mapping: whether it is that of labels.
std::vector<bool> LabelMappings(const ImportedTrace& trace) {
  std::vector<bool> is_label;
  for (const ImportedMapping& mapping : trace.mappings) {
    const std::string_view name = trace.Text(mapping.name);
    is_label.push_back(FileName(name) == kLabelMappingName);
  }
  return is_label;
}

std::vector<LabelRow> LabelRows(const ImportedTrace& trace) {
  const std::vector<bool> is_label = LabelMappings(trace);
  std::vector<LabelRow> rows;
  if (std::find(is_label.begin(), is_label.end(), true) == is_label.end())
    return rows;
  const CallsiteTable& callsites = trace.callsites;
  std::vector<uint32_t> innermost(callsites.row_count(), kNoId);  // label around or at it
  for (uint32_t row = 0; row < callsites.row_count(); ++row) {
    const uint32_t parent = callsites.parent[row];
    const uint32_t mapping = trace.frames.mapping[callsites.frame[row]];
    if (mapping < is_label.size() && is_label[mapping]) {
      innermost[row] = row;
      continue;
    }
    if (parent == kNoId || innermost[parent] == kNoId)
      continue;
    innermost[row] = innermost[parent];
    size_t count = 0;
    for (uint32_t at = innermost[row]; at != kNoId && count < kMaxLabels; ++count) {
      rows.push_back(
          {.callsite = row, .frame = callsites.frame[at], .depth = callsites.depth[at]});
      at = callsites.parent[at];
    }
  }
  return rows;
}

}  // namespace

void AddLabelTable(const ImportedTrace& trace, NamedTables* tables) {
  auto storage = std::make_shared<const std::vector<LabelRow>>(LabelRows(trace));
  const std::vector<LabelRow>& rows = *storage;
  const auto text_of = [&rows, &trace](size_t row) {
    return trace.Text(trace.frames.name[rows[row].frame]);
  };
  Table table;
  table.row_count = rows.size();
  table.storage = storage;
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("callsite_id", [&rows](size_t row) { return rows[row].callsite; }),
      TableColumn::Computed("key", ColumnType::kText,
                            [text_of](size_t row) {
                              const std::string_view text = text_of(row);
                              return Cell::Text(text.substr(0, text.find('=')));
                            }),
      TableColumn::Computed("value", ColumnType::kText,
                            [text_of](size_t row) {
                              const std::string_view text = text_of(row);
                              const size_t equals = text.find('=');
                              return equals != std::string_view::npos
                                         ? Cell::Text(text.substr(equals + 1))
                                         : Cell::Null();
                            }),
      NumberColumn("depth", [&rows](size_t row) { return rows[row].depth; }),
  };
  table.columns[1].order = ColumnOrder::kAscending;
  tables->emplace_back("heap_profile_label", std::move(table));
}

}  // namespace heapprofd
