// process, thread, stats, metadata, package_list and profiler_smaps: what a trace says
// about the machine, its processes and itself.
#include <iterator>
#include <memory>

#include "query/sqlite/columns.h"
#include "query/trace_tables.h"

namespace heapprofd {
namespace {

Table ProcessTable(const ImportedTrace& trace) {
  const std::vector<ImportedProcess>& rows = trace.processes;
  Table table;
  table.row_count = rows.size();
  TableColumn upid = TableColumn::RowNumber("upid");
  table.columns = {
      TableColumn::RowNumber("id"),
      std::move(upid),
      NumberColumn("pid", [&rows](size_t row) { return rows[row].pid; }),
      TextColumn("name", trace, [&rows](size_t row) { return rows[row].name; }),
      NumberColumn("start_ts", [&rows](size_t row) { return rows[row].start_ts; }),
      NullColumn("end_ts"),
      IdColumn("parent_upid", [&rows](size_t row) { return rows[row].parent_upid; }),
      NumberColumn("uid", [&rows](size_t row) { return rows[row].uid; }),
      NullColumn("android_appid"),
      NullColumn("android_user_id"),
      TextColumn("cmdline", trace, [&rows](size_t row) { return rows[row].cmdline; }),
      NumberColumn("arg_set_id", [](size_t) { return 0; }),
      NumberColumn("machine_id", [](size_t) { return 0; }),
  };
  return table;
}

Table ThreadTable(const ImportedTrace& trace) {
  const std::vector<ImportedThread>& rows = trace.threads;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TableColumn::RowNumber("utid"),
      NumberColumn("tid", [&rows](size_t row) { return rows[row].tid; }),
      TextColumn("name", trace, [&rows](size_t row) { return rows[row].name; }),
      NullColumn("start_ts"),
      NullColumn("end_ts"),
      IdColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      NumberColumn("is_main_thread", [&rows](size_t row) { return rows[row].is_main; }),
      NumberColumn("is_idle", [](size_t row) { return row == 0; }),
      NumberColumn("machine_id", [](size_t) { return 0; }),
      NullColumn("arg_set_id"),
  };
  return table;
}

const char* SeverityName(StatSeverity severity) {
  switch (severity) {
    case StatSeverity::kInfo:
      return "info";
    case StatSeverity::kDataLoss:
      return "data_loss";
    case StatSeverity::kError:
      return "error";
  }
  return nullptr;
}

struct StatRow {
  const StatDescription* description;
  std::optional<int64_t> idx;
  int64_t value;
};

// Counters without a key always have a row, 0 when nothing was counted; those with one
// have a row per key that was seen.
std::vector<StatRow> StatRows(const TraceStats& stats) {
  std::vector<StatRow> rows;
  for (const StatDescription& description : StatDescriptions()) {
    if (description.key == StatKey::kNone) {
      rows.push_back({&description, std::nullopt, stats.Get(description.id)});
      continue;
    }
    for (const auto& [key, value] : stats.values()) {
      if (key.first == description.id)
        rows.push_back({&description, key.second, value});
    }
  }
  return rows;
}

Table StatsTable(const ImportedTrace& trace) {
  auto rows = std::make_shared<const std::vector<StatRow>>(StatRows(trace.stats));
  const std::vector<StatRow>& at = *rows;
  Table table;
  table.row_count = rows->size();
  table.storage = rows;
  table.columns = {
      TableColumn::RowNumber("id"),
      LiteralColumn("name", [&at](size_t row) { return at[row].description->name; }),
      LiteralColumn("key_type",
                    [&at](size_t row) { return at[row].idx ? "indexed" : "single"; }),
      NumberColumn("idx", [&at](size_t row) { return at[row].idx; }),
      LiteralColumn(
          "severity",
          [&at](size_t row) { return SeverityName(at[row].description->severity); }),
      LiteralColumn("source", [](size_t) { return "analysis"; }),
      NumberColumn("value", [&at](size_t row) { return at[row].value; }),
      LiteralColumn("description",
                    [&at](size_t row) { return at[row].description->description; }),
      NumberColumn("machine_id", [](size_t) { return 0; }),
      NumberColumn("trace_id", [](size_t) { return 0; }),
  };
  return table;
}

Table MetadataTable(const ImportedTrace& trace) {
  const std::vector<ImportedMetadata>& rows = trace.metadata;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TextColumn("name", trace, [&rows](size_t row) { return rows[row].name; }),
      LiteralColumn("key_type", [](size_t) { return "single"; }),
      NumberColumn("int_value", [&rows](size_t row) { return rows[row].int_value; }),
      TextColumn("str_value", trace, [&rows](size_t row) { return rows[row].str_value; }),
      NumberColumn("machine_id", [](size_t) { return 0; }),
      NumberColumn("trace_id", [](size_t) { return 0; }),
  };
  return table;
}

Table PackageTable(const ImportedTrace& trace) {
  const std::vector<ImportedPackage>& rows = trace.packages;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TextColumn("package_name", trace, [&rows](size_t row) { return rows[row].name; }),
      NumberColumn("uid", [&rows](size_t row) { return rows[row].uid; }),
      NumberColumn("debuggable", [&rows](size_t row) { return rows[row].debuggable; }),
      NumberColumn("profileable_from_shell",
                   [&rows](size_t row) { return rows[row].profileable_from_shell; }),
      NumberColumn("version_code",
                   [&rows](size_t row) { return rows[row].version_code; }),
  };
  return table;
}

using SmapsNumber = std::optional<int64_t> ImportedSmaps::*;

constexpr std::pair<const char*, SmapsNumber> kSmapsNumbers[] = {
    {"aggregate_count", &ImportedSmaps::aggregate_count},
    {"size_kb", &ImportedSmaps::size_kb},
    {"private_dirty_kb", &ImportedSmaps::private_dirty_kb},
    {"swap_kb", &ImportedSmaps::swap_kb},
    {"start_address", &ImportedSmaps::start_address},
    {"module_timestamp", &ImportedSmaps::module_timestamp},
    {"protection_flags", &ImportedSmaps::protection_flags},
    {"private_clean_resident_kb", &ImportedSmaps::private_clean_kb},
    {"shared_dirty_resident_kb", &ImportedSmaps::shared_dirty_kb},
    {"shared_clean_resident_kb", &ImportedSmaps::shared_clean_kb},
    {"locked_kb", &ImportedSmaps::locked_kb},
    {"proportional_resident_kb", &ImportedSmaps::pss_kb},
    {"rss_kb", &ImportedSmaps::rss_kb},
    {"anonymous_kb", &ImportedSmaps::anonymous_kb},
    {"pss_dirty_kb", &ImportedSmaps::pss_dirty_kb},
    {"swap_pss_kb", &ImportedSmaps::swap_pss_kb},
};

// How the kernel marks the mapping of a file that is gone.
constexpr std::string_view kDeleted = " (deleted)";

Table SmapsTable(const ImportedTrace& trace) {
  const std::vector<ImportedSmaps>& rows = trace.smaps;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      NumberColumn("ts", [&rows](size_t row) { return rows[row].ts; }),
      TextColumn("path", trace, [&rows](size_t row) { return rows[row].path; }),
      TableColumn::Computed("path_trimmed", ColumnType::kText,
                            [&trace, &rows](size_t row) {
                              std::string_view path = trace.Text(rows[row].path);
                              if (path.ends_with(kDeleted))
                                path.remove_suffix(kDeleted.size());
                              return Cell::Text(path);
                            }),
      NumberColumn("is_deleted",
                   [&trace, &rows](size_t row) {
                     return trace.Text(rows[row].path).ends_with(kDeleted);
                   }),
      TextColumn("file_name", trace, [&rows](size_t row) { return rows[row].file_name; }),
      TextColumn("module_debugid", trace,
                 [&rows](size_t row) { return rows[row].module_debugid; }),
      TextColumn("module_debug_path", trace,
                 [&rows](size_t row) { return rows[row].module_debug_path; }),
  };
  for (const auto& [name, member] : kSmapsNumbers)
    table.columns.push_back(
        NumberColumn(name, [&rows, at = member](size_t row) { return rows[row].*at; }));
  return table;
}

}  // namespace

void AddSystemTables(const ImportedTrace& trace, NamedTables* tables) {
  tables->emplace_back("process", ProcessTable(trace));
  tables->emplace_back("thread", ThreadTable(trace));
  tables->emplace_back("stats", StatsTable(trace));
  tables->emplace_back("metadata", MetadataTable(trace));
  tables->emplace_back("package_list", PackageTable(trace));
  tables->emplace_back("profiler_smaps", SmapsTable(trace));
}

}  // namespace heapprofd
