#include "query/allocators.h"

#include <memory>
#include <string_view>
#include <vector>

#include "profile/allocation_functions.h"
#include "query/sqlite/columns.h"
#include "query/trace_tables.h"

namespace heapprofd {
namespace {

// Where inlined functions are part of a frame, it is not the allocation function alone.
StringId OnlyFunctionOf(const ImportedTrace& trace, size_t frame) {
  const uint32_t set = trace.frames.symbol_set[frame];
  if (set == kNoId)
    return trace.frames.name[frame];
  return trace.symbols.EndOf(set) == size_t{set} + 1 ? trace.symbols.name[set] : kNoId;
}

}  // namespace

std::vector<bool> AllocatorFrames(const ImportedTrace& trace) {
  std::vector<bool> is_allocator(trace.frames.row_count());
  for (size_t frame = 0; frame < is_allocator.size(); ++frame)
    is_allocator[frame] = IsAllocationFunction(trace.Text(OnlyFunctionOf(trace, frame)));
  return is_allocator;
}

// Callers have smaller ids than what they call, so an operator new that has called malloc
// is left out as well.
std::vector<uint32_t> HoldersOf(const ImportedTrace& trace) {
  const std::vector<bool> is_allocator = AllocatorFrames(trace);
  std::vector<uint32_t> holders(trace.callsites.row_count());
  for (uint32_t callsite = 0; callsite < holders.size(); ++callsite) {
    const uint32_t parent = trace.callsites.parent[callsite];
    const bool is_moved =
        parent != kNoId && is_allocator[trace.callsites.frame[callsite]];
    holders[callsite] = is_moved ? holders[parent] : callsite;
  }
  return holders;
}

void MoveToCallers(const ImportedTrace& trace, ValuesByCallsite* values) {
  const std::vector<uint32_t> holders = HoldersOf(trace);
  for (uint32_t callsite = 0; callsite < values->size(); ++callsite) {
    if (holders[callsite] != callsite)
      values->Move(callsite, holders[callsite]);
  }
}

void AddAllocatorTable(const ImportedTrace& trace, NamedTables* tables) {
  auto storage = std::make_shared<std::vector<uint32_t>>();
  const std::vector<bool> is_allocator = AllocatorFrames(trace);
  for (uint32_t row = 0; row < trace.callsites.row_count(); ++row) {
    if (is_allocator[trace.callsites.frame[row]])
      storage->push_back(row);
  }
  const std::vector<uint32_t>& callsites = *storage;
  Table table;
  table.row_count = callsites.size();
  table.storage = storage;
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("callsite_id", [&callsites](size_t row) { return callsites[row]; }),
      TextColumn("name", trace,
                 [&callsites, &trace](size_t row) {
                   return OnlyFunctionOf(trace, trace.callsites.frame[callsites[row]]);
                 }),
  };
  table.columns[1].order = ColumnOrder::kAscending;
  tables->emplace_back("heap_profile_allocator", std::move(table));
}

}  // namespace heapprofd
