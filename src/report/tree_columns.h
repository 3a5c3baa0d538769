// The nodes of a call tree as columns (report_tree.h), one added behind the other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "query/flame_tree.h"
#include "report/columns.h"
#include "report/report_functions.h"

namespace heapprofd {

inline constexpr std::array kTreeFigures = {&FlameValues::size, &FlameValues::count,
                                            &FlameValues::alloc_size,
                                            &FlameValues::alloc_count};

struct NodeTotals {
  FlameValues values;
  double variance = 0;  // of the live size

  void operator+=(const NodeTotals& more) {
    values += more.values;
    variance += more.variance;
  }
};

class TreeColumns {
 public:
  // `own`: what the node holds itself.
  void AddNode(uint32_t depth, uint32_t function, const NodeTotals& own);

  uint32_t count() const { return count_; }

  void AppendTo(std::string& out) const;

 private:
  uint32_t count_ = 0;
  uint32_t last_depth_ = 0;
  NumberColumnWriter depths_;
  NumberColumnWriter rows_;
  std::array<NumberColumnWriter, kTreeFigures.size()> figures_;
  NumberColumnWriter errors_;
};

// The functions of a tree as rows of the report.
class FunctionRows {
 public:
  // All must outlive this; functions may be added to `table`.
  FunctionRows(const StringPool& names,
               const FunctionTable& table,
               ReportFunctions& functions)
      : names_(names), table_(table), functions_(functions) {}

  uint32_t Of(uint32_t function) {
    if (function >= known_.size())
      known_.resize(table_.size(), kNoId);
    uint32_t& row = known_[function];
    if (row == kNoId)
      row = functions_.Row(names_, table_[function]);
    return row;
  }

 private:
  const StringPool& names_;
  const FunctionTable& table_;
  ReportFunctions& functions_;
  std::vector<uint32_t> known_;  // by function: its row, or kNoId
};

}  // namespace heapprofd
