#include "cli/record/named_targets.h"

#include <algorithm>
#include <utility>

#include "cli/results/process_order.h"
#include "cli/results/unnamed_advice.h"
#include "jit/jit_frames.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

double LiveBytes(const TargetProfile& profile) {
  LiveSum live;
  for (const HeapDump& dump : profile.heaps)
    live.Add(dump);
  return live.Total().bytes;
}

// Names for code that the target's own compiler has made, and what to do where that has
// left none.
void NameJitFrames(Target& target, int cancel_fd, SymbolizeReport& symbols) {
  const JitReport jit = NameJitFrames(target.code(),
                                      {.root_fd = target.root_fd(),
                                       .pids = {target.own_pid(), target.pid()},
                                       .uid = target.profile().process.uid,
                                       .user = target.held_to_account(),
                                       .late_files = target.profile().late_files},
                                      cancel_fd);
  if (jit.unnamed_frames == 0)
    return;
  symbols.modules.push_back(ModuleOfJitCode(target.profile(), jit));
}

// The peak may have been between two looks at the heap, and the end behind the last one.
std::vector<double> CurveOf(std::vector<CurvePoint> looks, const TargetProfile& profile) {
  if (looks.empty() || profile.heaps.empty())
    return {};
  const HeapDump& heap = profile.heaps[0];
  const CurveSpan span{.begin_ns = profile.process.start_ns, .end_ns = heap.end_ns};
  if (heap.peak_ns >= span.begin_ns && heap.peak_ns <= span.end_ns)
    looks.push_back({.time_ns = heap.peak_ns, .live_bytes = heap.peak_total.bytes});
  std::ranges::stable_sort(looks, {}, &CurvePoint::time_ns);
  looks.push_back({.time_ns = span.end_ns, .live_bytes = LiveBytes(profile)});
  return EvenlySpaced(looks, span);
}

// Without names yet.
std::vector<NamedTarget> AllTargets(const TraceRecording& recording,
                                    const LiveView& view) {
  std::vector<NamedTarget> named;
  for (Target* target : recording.targets()) {
    ProcessResult result;
    result.profile = &target->profile();
    const auto history = view.histories().find(target);
    if (history != view.histories().end())
      result.history = CurveOf(history->second, target->profile());
    result.resident_kib = target->profile().memory.rss_kib;
    named.push_back({.target = target, .result = std::move(result)});
  }
  return named;
}

}  // namespace

std::vector<NamedTarget> NameTargets(const TraceRecording& recording,
                                     const LiveView& view,
                                     const SymbolizeOptions& options,
                                     pid_t program) {
  std::vector<NamedTarget> named = AllTargets(recording, view);
  std::vector<ProfileToSymbolize> profiles;
  std::vector<ProcessResult*> results;
  for (NamedTarget& process : named) {
    if (!HasSamples(process.target->profile()))
      continue;
    results.push_back(&process.result);
    profiles.push_back({.code = process.target->code(),
                        .open_module = [target = process.target](const Mapping& mapping) {
                          return target->address_space().known().OpenFileOf(mapping);
                        }});
  }
  std::vector<SymbolizeReport> reports = SymbolizeProfiles(profiles, options);
  for (size_t i = 0; i < results.size(); ++i)
    results[i]->symbols = std::move(reports[i]);
  for (NamedTarget& process : named) {
    if (HasSamples(process.target->profile()))
      NameJitFrames(*process.target, options.cancel_fd, process.result.symbols);
  }
  std::vector<const TargetProfile*> unordered;
  unordered.reserve(named.size());
  for (const NamedTarget& process : named)
    unordered.push_back(process.result.profile);
  std::vector<NamedTarget> ordered;
  ordered.reserve(named.size());
  for (const size_t i : OrderOf(unordered, program))
    ordered.push_back(std::move(named[i]));
  return ordered;
}

bool WasInterrupted(const std::vector<NamedTarget>& named) {
  return std::any_of(named.begin(), named.end(), [](const NamedTarget& process) {
    const std::vector<ModuleSymbols>& modules = process.result.symbols.modules;
    return std::any_of(modules.begin(), modules.end(), [](const ModuleSymbols& module) {
      return module.reason == NoSymbolsReason::kCancelled;
    });
  });
}

}  // namespace heapprofd
