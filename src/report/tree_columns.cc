#include "report/tree_columns.h"

#include <algorithm>
#include <cmath>

namespace heapprofd {
namespace {

// In whole bytes. Variances come from files: they may be anything.
uint64_t ErrorOf(double variance) {
  constexpr double kMost = 1e15;
  const double error = variance > 0 ? std::min(std::sqrt(variance), kMost) : 0;
  return static_cast<uint64_t>(std::llround(error));
}

}  // namespace

void TreeColumns::AddNode(uint32_t depth, uint32_t function, const NodeTotals& own) {
  depths_.Add(count_ == 0 ? 0 : last_depth_ + 1 - depth);
  last_depth_ = depth;
  rows_.Add(function);
  for (size_t i = 0; i < kTreeFigures.size(); ++i)
    figures_[i].AddSigned(own.values.*kTreeFigures[i]);
  errors_.Add(ErrorOf(own.variance));
  ++count_;
}

void TreeColumns::AppendTo(std::string& out) const {
  const auto& [live_size, live_count, alloc_size, alloc_count] = figures_;
  const bool all_is_live = alloc_size == live_size && alloc_count == live_count;
  AppendNumber(count_, out);
  AppendNumber(uint32_t{all_is_live}, out);
  for (const NumberColumnWriter* column : {&depths_, &rows_, &live_size, &live_count})
    column->AppendTo(out);
  if (!all_is_live) {
    alloc_size.AppendTo(out);
    alloc_count.AppendTo(out);
  }
  errors_.AppendTo(out);
}

}  // namespace heapprofd
