#include "profile/whole_figures.h"

#include <algorithm>
#include <utility>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

Estimate Whole(Estimate estimate) {
  estimate.bytes = WholeFigure(estimate.bytes);
  estimate.count = WholeFigure(estimate.count);
  return estimate;
}

CallsiteTotals Whole(const CallsiteTotals& totals) {
  CallsiteTotals whole = {.allocated = Whole(totals.allocated),
                          .freed = Whole(totals.freed)};
  whole.freed.bytes = std::min(whole.freed.bytes, whole.allocated.bytes);
  whole.freed.count = std::min(whole.freed.count, whole.allocated.count);
  return whole;
}

// Without those that `is_left_out`.
template <typename Value, typename IsLeftOut>
void MakeRowsWhole(CallsiteRows<Value>* rows, IsLeftOut is_left_out) {
  CallsiteRows<Value> whole;
  whole.reserve(rows->size());
  for (const auto& [callsite, value] : *rows) {
    if (const Value rounded = Whole(value); !is_left_out(rounded))
      whole.emplace(callsite, rounded);
  }
  *rows = std::move(whole);
}

}  // namespace

void MakeWhole(HeapDump* dump) {
  MakeRowsWhole(&dump->callsites, [](const CallsiteTotals&) { return false; });
  MakeRowsWhole(&dump->peak, [](const Estimate& held) { return held.bytes <= 0; });
  MakeRowsWhole(&dump->idle.callsites,
                [](const Estimate& idle) { return idle.bytes <= 0; });
  dump->idle.unseen_bytes = WholeFigure(dump->idle.unseen_bytes);
  dump->peak_total = WholeFigures(dump->peak_total);
  for (ShapeRow& row : dump->shapes)
    row.estimate = Whole(row.estimate);
}

}  // namespace heapprofd
