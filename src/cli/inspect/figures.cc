#include "cli/inspect/figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/results/quality_warnings.h"
#include "profile/estimate.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

BoundedBytes Exact(double value) {
  return {.bytes = value, .low = value, .high = value};
}

// Of all that was allocated, where nobody has counted it.
BoundedBytes SampledBytes(const Estimate& sum, uint64_t interval) {
  return {.bytes = sum.bytes,
          .low = std::max(0.0, LowerLimit(sum, interval)),
          .high = UpperLimit(sum, interval)};
}

BoundedBytes SampledCalls(const Estimate& sum) {
  const double side = kNormalQuantile * std::sqrt(std::max(0.0, sum.count_variance));
  return {.bytes = sum.count,
          .low = std::max(0.0, sum.count - side),
          .high = sum.count + side};
}

// A difference of two profiles may be negative.
int64_t SignedFigure(double value) {
  return value < 0 ? -RoundedFigure(-value) : RoundedFigure(value);
}

class FigureSums {
 public:
  void Add(const ChosenHeap& chosen) {
    const HeapDump& heap = *chosen.heap;
    live_.Add(heap);
    end_.low += heap.certain_live;
    end_.high += heap.possible_live;
    tells_end_ &= chosen.file->tells_end();
    peak_ = SumOf(peak_, heap.peak_total);
    tells_peak_ |= heap.peak_ns != 0;
    lacks_peak_ |= LacksPeak(heap);
    told_ &= heap.told;
    has_limits_ &= heap.sampling_interval > 0;
    is_incomplete_ |= IsIncomplete(chosen.profile->quality);
    AddAllocated(heap);
  }

  void AddUnsampled(const ForkedChildren& children) {
    live_.AddUnsampled(children);
    end_.high += static_cast<double>(children.alloc_bytes);
    allocated_ = SumOf(allocated_, Exact(static_cast<double>(children.alloc_bytes)));
    calls_ = SumOf(calls_, Exact(static_cast<double>(children.alloc_calls)));
    is_incomplete_ |= children.uncounted > 0;
    is_counted_ &= children.uncounted == 0;
  }

  std::vector<HeapFigure> Figures() const {
    const bool tells_calls =
        told_.alloc_count && (calls_.bytes > 0 || allocated_.bytes <= 0);
    BoundedBytes end = end_;
    end.bytes = (end.low + end.high) / 2;
    return {
        {.name = "live",
         .json_name = "live_bytes",
         .title = "live at end",
         .value = tells_end_ ? live_.Total() : end,
         .is_known = tells_end_ ? told_.live_size : end.high > 0,
         .has_limits = has_limits_ || !tells_end_,
         .is_incomplete = is_incomplete_},
        {.name = "peak",
         .json_name = "peak_bytes",
         .title = "peak",
         .value = peak_,
         .is_known = (tells_peak_ || peak_.high > 0) && !lacks_peak_,
         .has_limits = has_limits_,
         .is_incomplete = is_incomplete_},
        {.name = "allocated",
         .json_name = "alloc_bytes",
         .title = "allocated",
         .value = allocated_,
         .is_known = told_.alloc_size,
         .has_limits = has_limits_ || is_counted_,
         .is_incomplete = is_incomplete_ && !is_counted_},
        {.name = "calls",
         .json_name = "alloc_calls",
         .title = "calls",
         .unit = FigureUnit::kCount,
         .value = calls_,
         .is_known = tells_calls,
         .has_limits = is_counted_ || (has_limits_ && knows_calls_error_),
         .is_incomplete = is_incomplete_ && !is_counted_},
    };
  }

 private:
  void AddAllocated(const HeapDump& heap) {
    const Estimate sum = AllocatedTotal(heap);
    const bool is_nothing = sum.count <= 0 && sum.bytes <= 0;
    const bool is_counted = heap.exact_alloc_calls > 0 || is_nothing;
    const bool is_exact = is_counted || heap.sampling_interval <= 1;
    is_counted_ &= is_counted;
    knows_calls_error_ &= is_exact || sum.count_variance > 0;
    allocated_ = SumOf(allocated_, is_exact ? Exact(sum.bytes)
                                            : SampledBytes(sum, heap.sampling_interval));
    calls_ = SumOf(calls_, is_exact ? Exact(sum.count) : SampledCalls(sum));
  }

  LiveSum live_;
  BoundedBytes end_;  // limits only
  BoundedBytes peak_;
  BoundedBytes allocated_;
  BoundedBytes calls_;
  bool tells_end_ = true;
  bool tells_peak_ = false;
  bool lacks_peak_ = false;  // one of the heaps
  bool has_limits_ = true;
  bool is_incomplete_ = false;
  ToldFigures told_;
  bool is_counted_ = true;  // all that was allocated
  bool knows_calls_error_ = true;
};

}  // namespace

std::vector<HeapFigure> FiguresOf(std::span<const ChosenHeap> heaps) {
  FigureSums sums;
  for (const ChosenHeap& heap : heaps)
    sums.Add(heap);
  return sums.Figures();
}

std::vector<HeapFigure> FiguresOf(const OpenedFile& file) {
  FigureSums sums;
  for (const auto& process : file.processes) {
    for (const HeapDump& heap : process->profile().heaps)
      sums.Add({&file, &process->profile(), &heap});
    sums.AddUnsampled(process->profile().forked);
  }
  return sums.Figures();
}

std::vector<std::string> FigureNames() {
  std::vector<std::string> names;
  for (const HeapFigure& figure : FiguresOf(std::span<const ChosenHeap>()))
    names.push_back(figure.name);
  return names;
}

std::string FormatFigure(double value, FigureUnit unit) {
  return unit == FigureUnit::kBytes ? FormatBytes(value) : FormatCount(value);
}

void AddFigure(const HeapFigure& figure, nlohmann::ordered_json* json) {
  if (!figure.is_known) {
    for (const char* suffix : {"", "_low", "_high"})
      (*json)[figure.json_name + suffix] = nullptr;
    return;
  }
  (*json)[figure.json_name] = SignedFigure(figure.value.bytes);
  for (const auto& [suffix, limit] :
       {std::pair("_low", figure.value.low), std::pair("_high", figure.value.high)}) {
    nlohmann::ordered_json& value = (*json)[figure.json_name + suffix];
    if (figure.has_limits)
      value = SignedFigure(limit);
    else
      value = nullptr;
  }
}

void AddPid(const TargetProfile& profile, nlohmann::ordered_json* json) {
  if (profile.process.pid != 0)
    (*json)["pid"] = profile.process.pid;
}

nlohmann::ordered_json JudgementsJson(const std::vector<Judgement>& judgements) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Judgement& judgement : judgements)
    list.push_back({{"text", judgement.text},
                    {"verdict", VerdictName(judgement.verdict)},
                    {"failed", judgement.verdict == Verdict::kExceeded},
                    {"error_is_known", judgement.knows_error},
                    {"is_incomplete", judgement.is_incomplete}});
  return list;
}

Status CheckKnown(const std::vector<Threshold>& thresholds,
                  const std::vector<HeapFigure>& figures,
                  const std::string& path) {
  for (const Threshold& threshold : thresholds) {
    for (const HeapFigure& figure : figures) {
      if (figure.name == threshold.figure && !figure.is_known)
        return Invalid("cannot use --fail-if " + threshold.text + ": " + path +
                       " does not tell " + figure.name);
    }
  }
  return {};
}

int SayJudgements(const std::string& tool, const std::vector<Judgement>& judgements) {
  int exit_code = kExitOk;
  for (const auto& [text, verdict, knows_error, is_incomplete] : judgements) {
    if (verdict == Verdict::kExceeded) {
      exit_code = kExitThreshold;
      Print(stderr, "%s: %s has come true\n", tool.c_str(), text.c_str());
    }
    if (verdict == Verdict::kWithinError)
      Print(stderr, "%s: %s is within the sampling error (95 %%): not failed\n",
            tool.c_str(), text.c_str());
    if (is_incomplete)
      Print(stderr,
            "%s: %s is judged without the records that are missing, and may be wrong\n",
            tool.c_str(), text.c_str());
    if (!knows_error)
      Print(stderr, "%s: %s is judged as if exact: the sampling error is not known\n",
            tool.c_str(), text.c_str());
  }
  return exit_code;
}

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace heapprofd
