#include "cli/named_targets.h"

#include <algorithm>

#include "cli/process_name.h"
#include "cli/unnamed_advice.h"
#include "jit/jit_frames.h"

namespace heapprofd {
namespace {

double SizeOf(const TargetProfile& profile) {
  double size = 0;
  for (const HeapDump& dump : profile.heaps)
    size += dump.peak_total.bytes;
  return size;
}

// Names for code that the target's own compiler has made, and what to do where that has
// left none.
void NameJitFrames(Target& target, SymbolizeReport& symbols) {
  const JitReport jit =
      NameJitFrames(target.profile(), {.root_fd = target.root_fd(),
                                       .pids = {target.own_pid(), target.pid()},
                                       .uid = target.profile().process.uid,
                                       .user = target.user()});
  if (jit.unnamed_frames == 0)
    return;
  symbols.modules.push_back(ModuleOfJitCode(target.profile(), jit));
}

// The program that the user has named goes before its helpers, unless it is a mere
// wrapper of one that has much more.
void PutProgramFirst(pid_t program, std::vector<NamedTarget>& named) {
  constexpr double kWrapperShare = 0.25;
  const auto own = std::find_if(named.begin(), named.end(), [&](const NamedTarget& it) {
    return it.target->profile().process.pid == program;
  });
  if (own == named.end() ||
      SizeOf(*own->result.profile) < kWrapperShare * SizeOf(*named[0].result.profile))
    return;
  std::rotate(named.begin(), own, own + 1);
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
      result.history = history->second.live_bytes;
    result.resident_kib = target->profile().memory.rss_kib;
    named.push_back({.target = target, .result = std::move(result)});
  }
  return named;
}

}  // namespace

bool HasSamples(const TargetProfile& profile) {
  return std::any_of(profile.heaps.begin(), profile.heaps.end(),
                     [](const HeapDump& dump) { return !dump.callsites.empty(); });
}

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
    profiles.push_back({.profile = &process.target->profile(),
                        .open_module = [target = process.target](const Mapping& mapping) {
                          return target->address_space().OpenFileOf(mapping);
                        }});
  }
  std::vector<SymbolizeReport> reports = SymbolizeProfiles(profiles, options);
  for (size_t i = 0; i < results.size(); ++i)
    results[i]->symbols = std::move(reports[i]);
  for (NamedTarget& process : named) {
    if (HasSamples(process.target->profile()))
      NameJitFrames(*process.target, process.result.symbols);
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const NamedTarget& a, const NamedTarget& b) {
                     return SizeOf(*a.result.profile) > SizeOf(*b.result.profile);
                   });
  PutProgramFirst(program, named);
  return named;
}

bool WasInterrupted(const std::vector<NamedTarget>& named) {
  return std::any_of(named.begin(), named.end(), [](const NamedTarget& process) {
    const std::vector<ModuleSymbols>& modules = process.result.symbols.modules;
    return std::any_of(modules.begin(), modules.end(), [](const ModuleSymbols& module) {
      return module.reason == NoSymbolsReason::kCancelled;
    });
  });
}

std::string ProgramBehindFirst(const std::vector<NamedTarget>& named, pid_t program) {
  for (const NamedTarget& process : named) {
    if (process.target->profile().process.pid == program)
      return &process == named.data() ? "" : ProcessName(process.target->profile());
  }
  return "";
}

}  // namespace heapprofd
