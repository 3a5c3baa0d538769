#include "cli/inspect/figures.h"

#include <algorithm>

#include "base/format.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "profile/estimate.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

BoundedBytes Exact(double value) {
  return {.bytes = value, .low = value, .high = value};
}

}  // namespace

std::vector<HeapFigure> FiguresOf(std::span<const HeapDump* const> heaps,
                                  bool tells_end) {
  LiveSum sum;
  BoundedBytes limits;
  BoundedBytes peak;
  Estimate allocated;
  for (const HeapDump* heap : heaps) {
    sum.Add(*heap);
    limits.low += heap->certain_live;
    limits.high += heap->possible_live;
    peak = SumOf(peak, heap->peak_total);
    allocated += AllocatedTotal(*heap);
  }
  const bool tells_peak =
      peak.high > 0 || std::any_of(heaps.begin(), heaps.end(), [](const HeapDump* heap) {
        return heap->peak_ns != 0;
      });
  const bool tells_calls = allocated.count > 0 || allocated.bytes <= 0;
  limits.bytes = (limits.low + limits.high) / 2;
  const BoundedBytes live = tells_end ? sum.Total() : limits;
  return {{"live", "live_bytes", "live at end", FigureUnit::kBytes, live},
          {"peak", "peak_bytes", "peak", FigureUnit::kBytes, peak, tells_peak},
          {"allocated", "alloc_bytes", "allocated", FigureUnit::kBytes,
           Exact(allocated.bytes)},
          {"calls", "alloc_calls", "calls", FigureUnit::kCount, Exact(allocated.count),
           tells_calls}};
}

std::vector<std::string> FigureNames() {
  std::vector<std::string> names;
  for (const HeapFigure& figure : FiguresOf({}, true))
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
  (*json)[figure.json_name] = RoundedFigure(figure.value.bytes);
  (*json)[figure.json_name + "_low"] = RoundedFigure(figure.value.low);
  (*json)[figure.json_name + "_high"] = RoundedFigure(figure.value.high);
}

void AddPid(const TargetProfile& profile, nlohmann::ordered_json* json) {
  if (profile.process.pid != 0)
    (*json)["pid"] = profile.process.pid;
}

nlohmann::ordered_json VerdictsJson(const std::vector<Threshold>& thresholds,
                                    const std::vector<Verdict>& verdicts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < thresholds.size(); ++i)
    list.push_back({{"text", thresholds[i].text},
                    {"verdict", VerdictName(verdicts[i])},
                    {"failed", verdicts[i] == Verdict::kExceeded}});
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

int SayVerdicts(const std::string& tool,
                const std::vector<Threshold>& thresholds,
                const std::vector<Verdict>& verdicts) {
  for (size_t i = 0; i < thresholds.size(); ++i) {
    if (verdicts[i] == Verdict::kExceeded)
      Print(stderr, "%s: %s has come true\n", tool.c_str(), thresholds[i].text.c_str());
    if (verdicts[i] == Verdict::kWithinError)
      Print(stderr, "%s: %s is within the sampling error (95 %%): not failed\n",
            tool.c_str(), thresholds[i].text.c_str());
  }
  return std::find(verdicts.begin(), verdicts.end(), Verdict::kExceeded) == verdicts.end()
             ? kExitOk
             : kExitThreshold;
}

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace heapprofd
