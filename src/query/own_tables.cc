// Tables that Perfetto does not have: whole dumps, standard errors, how far a recording
// can be trusted, and the memory of the processes around it.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "profile/figures.h"
#include "query/histogram.h"
#include "query/sqlite/columns.h"
#include "query/sum.h"
#include "query/trace_tables.h"
#include "tables/block_index.h"

namespace heapprofd {
namespace {

struct DumpTotals {
  int64_t live_size = 0;
  int64_t live_count = 0;
  int64_t alloc_size = 0;
  int64_t alloc_count = 0;
};

// Totals of each dump's heap up to the dump: allocation rows are what changed since the
// previous one.
std::vector<DumpTotals> TotalsOf(const ImportedTrace& trace) {
  std::map<std::pair<uint32_t, StringId>, DumpTotals> heaps;
  std::vector<DumpTotals> totals;
  for (const ImportedDump& dump : trace.dumps) {
    DumpTotals& heap = heaps[{dump.upid, dump.heap_name}];
    for (size_t i = 0; i < dump.allocation_count; ++i) {
      const size_t row = dump.first_allocation + i;
      const int64_t size = trace.allocations.size[row];
      const int64_t count = trace.allocations.count[row];
      heap.live_size = Sum(heap.live_size, size);
      heap.live_count = Sum(heap.live_count, count);
      if (i >= dump.first_live_row)
        continue;
      heap.alloc_size = Sum(heap.alloc_size, std::max<int64_t>(size, 0));
      heap.alloc_count = Sum(heap.alloc_count, std::max<int64_t>(count, 0));
    }
    totals.push_back(heap);
  }
  return totals;
}

std::optional<int64_t> Told(bool is_told, int64_t value) {
  return is_told ? std::optional(value) : std::nullopt;
}

int64_t AtMost(int64_t value, uint64_t limit) {
  return std::cmp_greater(value, limit) ? static_cast<int64_t>(limit) : value;
}

// Of the whole heap no more is told to be live than exact counts allow. The callsites'
// rows, each an estimate that errs in either direction, may add up to more; to cut those
// would make all of them err downwards. A dump of the peak has limits of the end only.
std::optional<int64_t> LiveSizeOf(const ImportedDump& dump, const DumpTotals& totals) {
  if (!dump.told.live_size && !dump.is_peak)
    return std::nullopt;
  return dump.live_high && !dump.is_peak ? AtMost(totals.live_size, *dump.live_high)
                                         : totals.live_size;
}

std::optional<int64_t> LiveCountOf(const ImportedDump& dump, const DumpTotals& totals) {
  if (!dump.told.live_count && !dump.is_peak)
    return std::nullopt;
  return dump.exact_alloc_calls > 0 ? AtMost(totals.live_count, dump.exact_alloc_calls)
                                    : totals.live_count;
}

void AddDumpFlags(const std::vector<ImportedDump>& rows, Table* table) {
  using Flag = bool ImportedDump::*;
  constexpr std::pair<const char*, Flag> kFlags[] = {
      {"is_peak", &ImportedDump::is_peak},
      {"is_complete", &ImportedDump::is_finalized},
      {"from_startup", &ImportedDump::from_startup},
      {"rejected_concurrent", &ImportedDump::rejected_concurrent},
      {"disconnected", &ImportedDump::disconnected},
      {"buffer_overran", &ImportedDump::buffer_overran},
      {"buffer_corrupted", &ImportedDump::buffer_corrupted},
      {"hit_guardrail", &ImportedDump::hit_guardrail},
  };
  for (const auto& [name, flag] : kFlags)
    table->columns.push_back(
        NumberColumn(name, [&rows, at = flag](size_t row) { return rows[row].*at; }));
}

// What the C library says about its heap; NULL when it was not asked.
void AddAllocator(const ImportedTrace& trace, Table* table) {
  using Figure = uint64_t ImportedAllocator::*;
  constexpr std::pair<const char*, Figure> kFigures[] = {
      {"allocator_system_size", &ImportedAllocator::system},
      {"allocator_in_use_size", &ImportedAllocator::in_use},
      {"allocator_free_size", &ImportedAllocator::free},
  };
  const std::vector<ImportedDump>& rows = trace.dumps;
  table->columns.push_back(TextColumn(
      "allocator", trace, [&rows](size_t row) { return rows[row].allocator.name; }));
  for (const auto& [name, figure] : kFigures)
    table->columns.push_back(
        NumberColumn(name, [&rows, at = figure](size_t row) -> std::optional<uint64_t> {
          if (rows[row].allocator.name == kNoId)
            return std::nullopt;
          return rows[row].allocator.*at;
        }));
}

// Of heapprofd's own recordings; others' dumps have no counts, no peak and no quality.
bool IsOurs(const ImportedDump& dump) {
  return dump.quality != kNoId;
}

// No more than the rounding of many rows makes live size larger than the peak's. Dumps of
// the peak have limits of the end only.
std::optional<uint64_t> PeakSizeOf(const ImportedDump& dump, const DumpTotals& totals) {
  if (!IsOurs(dump) && dump.peak_bytes == 0 && !dump.peak_ts)
    return std::nullopt;
  const int64_t live = dump.is_peak ? 0 : LiveSizeOf(dump, totals).value_or(0);
  return std::max(dump.peak_bytes, static_cast<uint64_t>(std::max<int64_t>(live, 0)));
}

void AddHeapCounts(const std::vector<ImportedDump>& rows, Table* table) {
  for (const HeapCount& count : kHeapCounts)
    table->columns.push_back(NumberColumn(
        count.column, [&rows, at = count.value](size_t row) -> std::optional<uint64_t> {
          if (!IsOurs(rows[row]) && rows[row].exact_alloc_calls == 0)
            return std::nullopt;
          return rows[row].*at;
        }));
}

// Limits of live_size, which in a dump of the peak is of another moment than they are.
std::optional<uint64_t> OfEnd(const ImportedDump& dump,
                              const std::optional<uint64_t>& limit) {
  return dump.is_peak ? std::nullopt : limit;
}

void AddLimits(const std::vector<ImportedDump>& rows,
               const std::vector<DumpTotals>& totals,
               Table* table) {
  const TableColumn columns[] = {
      NumberColumn("live_size_low",
                   [&rows](size_t row) { return OfEnd(rows[row], rows[row].live_low); }),
      NumberColumn("live_size_high",
                   [&rows](size_t row) { return OfEnd(rows[row], rows[row].live_high); }),
      NumberColumn(
          "peak_size",
          [&rows, &totals](size_t row) { return PeakSizeOf(rows[row], totals[row]); }),
      NumberColumn("peak_size_low", [&rows](size_t row) { return rows[row].peak_low; }),
      NumberColumn("peak_size_high",
                   [&rows, &totals](size_t row) -> std::optional<uint64_t> {
                     if (!rows[row].peak_high)
                       return std::nullopt;
                     return std::max(*rows[row].peak_high,
                                     PeakSizeOf(rows[row], totals[row]).value_or(0));
                   }),
      NumberColumn("peak_ts", [&rows](size_t row) { return rows[row].peak_ts; }),
      NumberColumn("idle_ts", [&rows](size_t row) { return rows[row].idle_ts; }),
      NumberColumn("idle_until_ts",
                   [&rows](size_t row) { return rows[row].idle_until_ts; }),
      NumberColumn("idle_unseen_size",
                   [&rows](size_t row) { return rows[row].idle_unseen; }),
      NumberColumn("sampling_interval",
                   [&rows](size_t row) { return rows[row].sampling_interval; }),
      NumberColumn("original_sampling_interval",
                   [&rows](size_t row) { return rows[row].original_sampling_interval; }),
      NumberColumn("client_error",
                   [&rows](size_t row) { return rows[row].client_error; }),
  };
  table->columns.insert(table->columns.end(), std::begin(columns), std::end(columns));
}

Table HeapDumpTable(const ImportedTrace& trace) {
  const std::vector<ImportedDump>& rows = trace.dumps;
  auto storage = std::make_shared<const std::vector<DumpTotals>>(TotalsOf(trace));
  const std::vector<DumpTotals>& totals = *storage;
  Table table;
  table.row_count = rows.size();
  table.storage = storage;
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("ts", [&rows](size_t row) { return rows[row].ts; }),
      NumberColumn("start_ts", [&rows](size_t row) { return rows[row].start_ts; }),
      NumberColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      TextColumn("heap_name", trace, [&rows](size_t row) { return rows[row].heap_name; }),
      TextColumn("label", trace, [&rows](size_t row) { return rows[row].label; }),
      TextColumn("reason", trace, [&rows](size_t row) { return rows[row].reason; }),
      NumberColumn(
          "live_size",
          [&rows, &totals](size_t row) { return LiveSizeOf(rows[row], totals[row]); }),
      NumberColumn(
          "live_count",
          [&rows, &totals](size_t row) { return LiveCountOf(rows[row], totals[row]); }),
      NumberColumn("alloc_size",
                   [&rows, &totals](size_t row) {
                     return Told(rows[row].told.alloc_size && !rows[row].is_peak,
                                 totals[row].alloc_size);
                   }),
      NumberColumn("alloc_count",
                   [&rows, &totals](size_t row) {
                     return Told(rows[row].told.alloc_count && !rows[row].is_peak,
                                 totals[row].alloc_count);
                   }),
  };
  AddHeapCounts(rows, &table);
  AddLimits(rows, totals, &table);
  AddDumpFlags(rows, &table);
  AddAllocator(trace, &table);
  return table;
}

// What each row of a dump and a callsite begins with.
Table TableByCallsite(const ImportedTrace& trace,
                      const Column<uint32_t>& dump,
                      const Column<uint32_t>& callsite) {
  const std::vector<ImportedDump>& dumps = trace.dumps;
  Table table;
  table.row_count = dump.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TableColumn::Ids("dump_id", dump.span(), ColumnOrder::kAscending),
      NumberColumn("ts", [&dumps, &dump](size_t row) { return dumps[dump[row]].ts; }),
      NumberColumn("upid", [&dumps, &dump](size_t row) { return dumps[dump[row]].upid; }),
      TextColumn("heap_name", trace,
                 [&dumps, &dump](size_t row) { return dumps[dump[row]].heap_name; }),
      TableColumn::Ids("callsite_id", callsite.span()),
  };
  return table;
}

Table EstimateErrorTable(const ImportedTrace& trace) {
  const EstimateTable& rows = trace.estimates;
  Table table = TableByCallsite(trace, rows.dump, rows.callsite);
  const TableColumn columns[] = {
      TableColumn::Reals("live_size_error", rows.live_bytes_error.span()),
      TableColumn::Reals("live_count_error", rows.live_count_error.span()),
      TableColumn::Reals("alloc_size_error", rows.allocated_bytes_error.span()),
      TableColumn::Reals("alloc_count_error", rows.alloc_count_error.span()),
      TableColumn::Integers("peak_size", rows.peak_bytes.span()),
      TableColumn::Integers("peak_count", rows.peak_count.span()),
      TableColumn::Integers("idle_size", rows.idle_bytes.span()),
  };
  table.columns.insert(table.columns.end(), std::begin(columns), std::end(columns));
  return table;
}

Table HistogramTable(const ImportedTrace& trace) {
  const ShapeTable& rows = trace.shapes;
  const auto kind_of = [&rows](size_t row) {
    return static_cast<ShapeKind>(rows.kind[row]);
  };
  Table table = TableByCallsite(trace, rows.dump, rows.callsite);
  const TableColumn columns[] = {
      TableColumn::Computed(
          "kind", ColumnType::kText,
          [kind_of](size_t row) { return Cell::Text(NameOf(kind_of(row))); }),
      NumberColumn(
          "low",
          [&rows, kind_of](size_t row) { return LowOf(kind_of(row), rows.log2[row]); }),
      NumberColumn(
          "high",
          [&rows, kind_of](size_t row) { return HighOf(kind_of(row), rows.log2[row]); }),
      TableColumn::Integers("count", rows.count.span()),
      TableColumn::Integers("size", rows.size.span()),
      TableColumn::Reals("count_error", rows.count_error.span()),
      TableColumn::Reals("size_error", rows.size_error.span()),
      IdColumn("utid", [&rows](size_t row) { return rows.utid[row]; }),
  };
  table.columns.insert(table.columns.end(), std::begin(columns), std::end(columns));
  return table;
}

Table ThreadTotalsTable(const ImportedTrace& trace) {
  const std::vector<ThreadTotals>& rows = trace.thread_totals;
  const std::vector<ImportedDump>& dumps = trace.dumps;
  const std::vector<ImportedThread>& threads = trace.threads;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("dump_id", [&rows](size_t row) { return rows[row].dump; }),
      NumberColumn("ts",
                   [&rows, &dumps](size_t row) { return dumps[rows[row].dump].ts; }),
      NumberColumn("upid",
                   [&rows, &dumps](size_t row) { return dumps[rows[row].dump].upid; }),
      TextColumn("heap_name", trace,
                 [&rows, &dumps](size_t row) { return dumps[rows[row].dump].heap_name; }),
      IdColumn("utid", [&rows](size_t row) { return rows[row].utid; }),
      NumberColumn("tid",
                   [&rows, &threads](size_t row) -> std::optional<int64_t> {
                     const uint32_t utid = rows[row].utid;
                     return utid == kNoId ? std::nullopt
                                          : std::optional(threads[utid].tid);
                   }),
      TextColumn("thread_name", trace,
                 [&rows, &threads](size_t row) {
                   const uint32_t utid = rows[row].utid;
                   return utid == kNoId ? kNoId : threads[utid].name;
                 }),
      NumberColumn(
          "live_size",
          [&rows](size_t row) { return rows[row].alloc_size - rows[row].free_size; }),
      NumberColumn(
          "live_count",
          [&rows](size_t row) { return rows[row].alloc_count - rows[row].free_count; }),
      NumberColumn("alloc_size", [&rows](size_t row) { return rows[row].alloc_size; }),
      NumberColumn("alloc_count", [&rows](size_t row) { return rows[row].alloc_count; }),
      RealColumn("live_size_error",
                 [&rows](size_t row) { return rows[row].live_size_error; }),
      RealColumn("live_count_error",
                 [&rows](size_t row) { return rows[row].live_count_error; }),
      RealColumn("alloc_size_error",
                 [&rows](size_t row) { return rows[row].alloc_size_error; }),
      RealColumn("alloc_count_error",
                 [&rows](size_t row) { return rows[row].alloc_count_error; }),
  };
  table.columns[1].order = ColumnOrder::kAscending;
  return table;
}

// One row per dump that tells, and figure.
Table QualityTable(const ImportedTrace& trace) {
  constexpr size_t kCounters = kFigures.size();
  auto storage = std::make_shared<std::vector<uint32_t>>();
  for (uint32_t dump = 0; dump < trace.dumps.size(); ++dump) {
    if (trace.dumps[dump].quality != kNoId)
      storage->push_back(dump);
  }
  const std::vector<uint32_t>& ids = *storage;
  const std::vector<ImportedDump>& dumps = trace.dumps;
  Table table;
  table.row_count = ids.size() * kCounters;
  table.storage = storage;
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("dump_id", [&ids](size_t row) { return ids[row / kCounters]; }),
      NumberColumn("ts",
                   [&ids, &dumps](size_t row) { return dumps[ids[row / kCounters]].ts; }),
      NumberColumn("upid", [&ids, &dumps](
                               size_t row) { return dumps[ids[row / kCounters]].upid; }),
      LiteralColumn("name", [](size_t row) { return kFigures[row % kCounters].name; }),
      NumberColumn("value",
                   [&ids, &trace](size_t row) {
                     const uint32_t quality = trace.dumps[ids[row / kCounters]].quality;
                     return trace.qualities[quality].*kFigures[row % kCounters].value;
                   }),
      LiteralColumn("description",
                    [](size_t row) { return kFigures[row % kCounters].meaning; }),
  };
  table.columns[1].order = ColumnOrder::kAscending;
  return table;
}

Table ProcessMemoryTable(const ImportedTrace& trace) {
  const std::vector<ProcessCounter>& rows = trace.counters;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("ts", [&rows](size_t row) { return rows[row].ts; }),
      NumberColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      TextColumn("name", trace, [&rows](size_t row) { return rows[row].name; }),
      NumberColumn("value", [&rows](size_t row) { return rows[row].value; }),
  };
  return table;
}

Table UnsampledChildrenTable(const ImportedTrace& trace) {
  const std::vector<ImportedChildren>& rows = trace.unsampled_children;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      NumberColumn("count", [&rows](size_t row) { return rows[row].counts.count; }),
      NumberColumn("uncounted",
                   [&rows](size_t row) { return rows[row].counts.uncounted; }),
      NumberColumn("alloc_size",
                   [&rows](size_t row) { return rows[row].counts.alloc_bytes; }),
      NumberColumn("alloc_count",
                   [&rows](size_t row) { return rows[row].counts.alloc_calls; }),
  };
  return table;
}

// Of each direct buffer the stack that allocated its memory, which is looked for when a
// query first asks.
TableColumn BufferCallsiteColumn(const ImportedTrace& trace) {
  struct Callsites {
    std::once_flag is_made;
    std::vector<uint32_t> rows;  // by buffer; kNoId: no sampled block has its address
  };

  const auto callsites = std::make_shared<Callsites>();
  return IdColumn("callsite_id", [&trace, callsites](size_t row) {
    std::call_once(callsites->is_made, [&trace, &rows = callsites->rows] {
      const HeapGraphTables& heap = trace.heap_graph;
      const BlockIndex blocks(trace);
      for (const HeapDirectBuffer& buffer : heap.direct_buffers) {
        const uint32_t upid = heap.graphs[heap.objects.graph[buffer.object]].upid;
        const uint32_t block = blocks.Find(upid, buffer.address);
        rows.push_back(block == kNoId ? kNoId : trace.live_blocks.callsite[block]);
      }
    });
    return callsites->rows[row];
  });
}

Table DirectBufferTable(const ImportedTrace& trace) {
  const std::vector<HeapDirectBuffer>& rows = trace.heap_graph.direct_buffers;
  const HeapGraphTables& heap = trace.heap_graph;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("upid",
                   [&rows, &heap](size_t row) {
                     return heap.graphs[heap.objects.graph[rows[row].object]].upid;
                   }),
      NumberColumn("object_id", [&rows](size_t row) { return rows[row].object; }),
      NumberColumn("address", [&rows](size_t row) { return rows[row].address; }),
      NumberColumn("bytes", [&rows](size_t row) { return rows[row].bytes; }),
      BufferCallsiteColumn(trace),
  };
  return table;
}

}  // namespace

void AddOwnTables(const ImportedTrace& trace, NamedTables* tables) {
  tables->emplace_back("heap_dump", HeapDumpTable(trace));
  tables->emplace_back("heap_profile_estimate", EstimateErrorTable(trace));
  tables->emplace_back("heap_profile_histogram", HistogramTable(trace));
  tables->emplace_back("heap_profile_thread", ThreadTotalsTable(trace));
  tables->emplace_back("heap_profile_quality", QualityTable(trace));
  tables->emplace_back("process_memory", ProcessMemoryTable(trace));
  tables->emplace_back("heap_profile_unsampled_children", UnsampledChildrenTable(trace));
  tables->emplace_back("heap_profile_direct_buffer", DirectBufferTable(trace));
}

}  // namespace heapprofd
