#include "query/dump_values.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/format.h"

namespace heapprofd {
namespace {

const Column<double>& ErrorsOf(const EstimateTable& estimates, ProfileView view) {
  switch (view) {
    case ProfileView::kLiveSize:
      break;
    case ProfileView::kLiveCount:
      return estimates.live_count_error;
    case ProfileView::kAllocSize:
      return estimates.allocated_bytes_error;
    case ProfileView::kAllocCount:
      return estimates.alloc_count_error;
  }
  return estimates.live_bytes_error;
}

}  // namespace

Result<uint32_t> DumpOf(const ImportedTrace& trace, const Cell& cell) {
  if (cell.kind == CellKind::kInteger && cell.integer >= 0 &&
      static_cast<uint64_t>(cell.integer) < trace.dumps.size())
    return static_cast<uint32_t>(cell.integer);
  return Invalid("cannot find dump " +
                 (cell.kind == CellKind::kInteger ? std::to_string(cell.integer)
                                                  : std::string("(no number)")) +
                 ": the trace has " +
                 FormatCounted(static_cast<double>(trace.dumps.size()), "dump", "dumps") +
                 "; SELECT id, ts, upid, heap_name FROM heap_dump lists them");
}

Result<ProfileView> ViewOf(const Cell& cell) {
  if (cell.is_null())
    return ProfileView::kLiveSize;
  const std::optional<ProfileView> view = ParseView(cell.text);
  if (view)
    return *view;
  return Invalid("cannot find view " + std::string(cell.text) + ": the views are " +
                 kViewNames);
}

ToldFigures ToldInRows(const ImportedDump& dump) {
  ToldFigures told = dump.told;
  if (dump.is_peak)
    told = {
        .live_size = true, .live_count = true, .alloc_size = false, .alloc_count = false};
  return told;
}

Status CheckTold(const ImportedTrace& trace, uint32_t id, ProfileView view) {
  const ToldFigures told = ToldInRows(trace.dumps[id]);
  const bool is_told = view == ProfileView::kLiveSize    ? told.live_size
                       : view == ProfileView::kLiveCount ? told.live_count
                       : view == ProfileView::kAllocSize ? told.alloc_size
                                                         : told.alloc_count;
  if (is_told)
    return {};
  const char* const others = told.alloc_size    ? "; alloc_space is told"
                             : told.live_size   ? "; space is told"
                             : told.live_count  ? "; objects is told"
                             : told.alloc_count ? "; alloc_objects is told"
                                                : "";
  return Invalid("cannot sum this view: the file of dump " + std::to_string(id) +
                 " does not tell it" + others);
}

ValuesByCallsite ValuesAt(const ImportedTrace& trace, uint32_t id) {
  const ImportedDump& dump = trace.dumps[id];
  return SumAllocations(trace, {dump.upid, dump.heap_name, dump.ts});
}

std::span<const HeapSums::Row> HeapSums::At(uint32_t id) {
  const ImportedDump& at = trace_.dumps[id];
  rows_.clear();
  places_.resize(trace_.callsite_limit(), kNoId);
  for (const uint32_t row : processes_.DumpsOf(at.upid, at.heap_name)) {
    if (trace_.dumps[row].ts <= at.ts)
      Add(trace_.dumps[row]);
  }
  SortRows();
  std::erase_if(rows_, [](const Row& row) { return row.values.IsZero(); });
  return rows_;
}

void HeapSums::Add(const ImportedDump& dump) {
  for (size_t i = 0; i < dump.allocation_count; ++i) {
    const size_t row = dump.first_allocation + i;
    const uint32_t callsite = trace_.allocations.callsite[row];
    uint32_t& place = places_[callsite];
    if (place == kNoId) {
      place = static_cast<uint32_t>(rows_.size());
      rows_.push_back({callsite, {}});
    }
    rows_[place].values += AllocationAt(trace_, row);
  }
}

// Forgets their places, too.
void HeapSums::SortRows() {
  // So many that going through all callsites is less work than sorting.
  constexpr size_t kMany = 16;
  if (rows_.size() < places_.size() / kMany) {
    for (const Row& row : rows_)
      places_[row.callsite] = kNoId;
    std::ranges::sort(rows_, {}, &Row::callsite);
    return;
  }
  std::vector<Row> sorted;
  sorted.reserve(rows_.size());
  for (uint32_t& place : places_) {
    if (place != kNoId)
      sorted.push_back(rows_[place]);
    place = kNoId;
  }
  rows_ = std::move(sorted);
}

ValuesByCallsite PeakValuesAt(const ImportedTrace& trace, uint32_t id) {
  const ImportedDump& dump = trace.dumps[id];
  ValuesByCallsite values(trace.callsite_limit());
  for (size_t i = 0; i < dump.estimate_count; ++i) {
    const size_t row = dump.first_estimate + i;
    const FlameValues peak = {.count = trace.estimates.peak_count[row],
                              .size = trace.estimates.peak_bytes[row]};
    if (!peak.IsZero())
      values.At(trace.estimates.callsite[row]) += peak;
  }
  return values;
}

ValuesByCallsite ThreadValuesAt(const ImportedTrace& trace, uint32_t id, uint32_t utid) {
  const ShapeTable& rows = trace.shapes;
  ValuesByCallsite values(trace.callsite_limit());
  const auto [begin, end] =
      std::equal_range(rows.dump.span().begin(), rows.dump.span().end(), id);
  for (auto at = begin; at != end; ++at) {
    const auto row = static_cast<size_t>(at - rows.dump.span().begin());
    if (rows.utid[row] != utid || rows.callsite[row] == kNoId)
      continue;
    const auto kind = static_cast<ShapeKind>(rows.kind[row]);
    if (kind == ShapeKind::kAllocatedSize) {
      values.At(rows.callsite[row]) +=
          {.alloc_count = rows.count[row], .alloc_size = rows.size[row]};
    } else if (kind == ShapeKind::kLiveSize) {
      values.At(rows.callsite[row]) += {.count = rows.count[row], .size = rows.size[row]};
      values.AddVariance(rows.callsite[row], rows.size_error[row] * rows.size_error[row]);
    }
  }
  return values;
}

void AddVariances(const ImportedTrace& trace,
                  uint32_t id,
                  ProfileView view,
                  ValuesByCallsite* values) {
  const ImportedDump& dump = trace.dumps[id];
  const Column<double>& errors = ErrorsOf(trace.estimates, view);
  for (size_t i = 0; i < dump.estimate_count; ++i) {
    const size_t row = dump.first_estimate + i;
    values->AddVariance(trace.estimates.callsite[row], errors[row] * errors[row]);
  }
}

}  // namespace heapprofd
