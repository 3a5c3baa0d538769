// What our own functions mean by a dump and a view, and the values of a dump.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/column.h"
#include "base/status.h"
#include "query/flame_tree.h"
#include "query/profile_view.h"
#include "query/sqlite/table.h"
#include "tables/process_rows.h"

namespace heapprofd {

// The row of heap_dump that an argument names. kInvalidArgument: there is none.
Result<uint32_t> DumpOf(const ImportedTrace& trace, const Cell& cell);

// NULL stands for space. kInvalidArgument: there is no such view.
Result<ProfileView> ViewOf(const Cell& cell);

// Returns the figures that the rows of a dump give; those of the peak what was live then.
ToldFigures ToldInRows(const ImportedDump& dump);

// kInvalidArgument: the dump's file does not give the figure of the view.
Status CheckTold(const ImportedTrace& trace, uint32_t dump, ProfileView view);

// The heap of one dump, from its beginning up to the dump.
ValuesByCallsite ValuesAt(const ImportedTrace& trace, uint32_t dump);

// The same of one heap after another: each takes what the heap has, not what the trace
// has.
class HeapSums {
 public:
  struct Row {
    uint32_t callsite;
    FlameValues values;  // not all of them 0
  };

  // Of the trace as it is now, which outlives this.
  explicit HeapSums(const ImportedTrace& trace) : trace_(trace), processes_(trace) {}

  // By callsite. They end with the next call.
  std::span<const Row> At(uint32_t dump);

  const ProcessRows& processes() const { return processes_; }

 private:
  void Add(const ImportedDump& dump);
  void SortRows();

  const ImportedTrace& trace_;
  const ProcessRows processes_;
  std::vector<Row> rows_;
  Column<uint32_t> places_;  // in rows_, by callsite; kNoId: none, as between calls
};

// What was live of it at the peak before this dump, as far as the trace tells.
ValuesByCallsite PeakValuesAt(const ImportedTrace& trace, uint32_t dump);

// What a thread has allocated up to the last dump of a heap, and what of that is live,
// with the variances of live bytes.
ValuesByCallsite ThreadValuesAt(const ImportedTrace& trace, uint32_t dump, uint32_t utid);

// Adds the variances of one figure of these values; none when the trace does not tell.
void AddVariances(const ImportedTrace& trace,
                  uint32_t dump,
                  ProfileView view,
                  ValuesByCallsite* values);

}  // namespace heapprofd
