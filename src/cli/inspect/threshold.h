// --fail-if: a figure and what it may not be, judged with the sampling error in mind.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/flag_values.h"
#include "profile/model.h"

namespace heapprofd {

// "peak>300MiB"; of a change "live>+5%" or "calls<-1000".
struct Threshold {
  std::string text;
  std::string figure;
  bool is_less = false;     // fails below
  bool is_percent = false;  // of the former value
  double bound = 0;         // bytes, a number, or percent
};

// `figures`: those that there are. `of_change`: percents and signs have a meaning.
Result<Threshold> ParseThreshold(const std::string& text,
                                 const std::vector<std::string>& figures,
                                 bool of_change);

// Takes them from the command line, one at a time.
ApplyValue ThresholdValue(std::vector<Threshold>* thresholds,
                          const std::vector<std::string>& figures,
                          bool of_change);

enum class Verdict : uint8_t {
  kHolds,
  kWithinError,  // the bound is within the 95 % interval: nobody knows
  kExceeded,
};

Verdict Judge(const Threshold& threshold, const BoundedBytes& figure);
Verdict JudgeChange(const Threshold& threshold,
                    const BoundedBytes& before,
                    const BoundedBytes& after);

// b - a with its limits: those of two independent estimates.
BoundedBytes Difference(const BoundedBytes& b, const BoundedBytes& a);

// "exceeded", "within the sampling error", "holds".
const char* VerdictName(Verdict verdict);

}  // namespace heapprofd
