#include "cli/results/report_warnings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/results/quality_words.h"
#include "cli/results/unnamed_advice.h"
#include "cli/results/unrecorded_text.h"
#include "cli/text_layout.h"
#include "config/recording_config.h"
#include "tables/last_dumps.h"
#include "tables/trace_stats.h"

namespace heapprofd {
namespace {

constexpr size_t kMostToldLines = 200;  // of all processes: a file may have any number

// What the dumps of a process say of how it went.
struct ProcessFlags {
  uint32_t last_dump = 0;  // of any heap, with figures of quality if there are some
  bool buffer_overran = false;
  bool buffer_corrupted = false;
  bool hit_guardrail = false;
  bool has_waited = false;
  bool has_foreign_stack = false;
};

std::map<uint32_t, ProcessFlags> FlagsByProcess(const ImportedTrace& trace) {
  constexpr uint32_t kHitTimeout = static_cast<uint32_t>(ClientFault::kHitTimeout);
  constexpr uint32_t kForeignStack = 2;  // Perfetto's number
  std::map<uint32_t, ProcessFlags> processes;
  for (uint32_t id = 0; id < trace.dumps.size(); ++id) {
    const ImportedDump& dump = trace.dumps[id];
    ProcessFlags& flags =
        processes.try_emplace(dump.upid, ProcessFlags{.last_dump = id}).first->second;
    const ImportedDump& last = trace.dumps[flags.last_dump];
    if (std::pair(dump.quality != kNoId, dump.ts) >=
        std::pair(last.quality != kNoId, last.ts))
      flags.last_dump = id;
    flags.buffer_overran |= dump.buffer_overran;
    flags.buffer_corrupted |= dump.buffer_corrupted;
    flags.hit_guardrail |= dump.hit_guardrail;
    flags.has_waited |= dump.client_error == kHitTimeout;
    flags.has_foreign_stack |= dump.client_error == kForeignStack;
  }
  return processes;
}

// By process: bytes of the heap with most at its end. Of dumps of the maximum nobody knows.
std::map<uint32_t, double> LiveAtEnd(const ImportedTrace& trace) {
  std::vector<double> changes(trace.dumps.size());
  for (size_t row = 0; row < trace.allocations.row_count(); ++row)
    changes[trace.allocations.dump[row]] +=
        static_cast<double>(trace.allocations.size[row]);
  std::map<std::pair<uint32_t, StringId>, double> heaps;
  for (size_t id = 0; id < trace.dumps.size(); ++id) {
    if (!trace.dumps[id].is_peak)
      heaps[{trace.dumps[id].upid, trace.dumps[id].heap_name}] += changes[id];
  }
  std::map<uint32_t, double> most;
  for (const uint32_t id : LastDumps(trace)) {
    const ImportedDump& dump = trace.dumps[id];
    if (dump.is_peak)
      continue;
    double live = std::max(heaps[{dump.upid, dump.heap_name}], 0.0);
    if (dump.live_low && dump.live_high && *dump.live_low <= *dump.live_high)
      live = std::clamp(live, static_cast<double>(*dump.live_low),
                        static_cast<double>(*dump.live_high));
    double& known = most[dump.upid];
    known = std::max(known, live);
  }
  return most;
}

// Of a process whose figures of quality the file has.
std::vector<std::string> WordsOfFigures(const ImportedTrace& trace,
                                        const ProcessFlags& flags,
                                        const std::map<uint32_t, double>& live,
                                        uint64_t block_timeout_us) {
  const ImportedDump& last = trace.dumps[flags.last_dump];
  const uint32_t end = trace.processes[last.upid].end;
  ProfileFaults faults = {.quality = trace.qualities[last.quality],
                          .from_startup = last.from_startup,
                          .has_waited = flags.has_waited,
                          .block_timeout_us = block_timeout_us,
                          .sampling_interval = last.sampling_interval,
                          .original_sampling_interval = last.original_sampling_interval};
  std::vector<std::string> words;
  if (end != kNoId) {
    faults.late_files = trace.process_ends[end].late_files;
    const auto known = live.find(last.upid);
    if (!last.from_startup && faults.quality.unsampled_calls == 0)
      words.push_back(
          AttachedWords(known == live.end() ? std::nullopt : std::optional(known->second),
                        trace.process_ends[end].rss_kib));
  }
  for (std::string& fault : WordsOf(faults))
    words.push_back(std::move(fault));
  if (flags.hit_guardrail)
    words.push_back(GuardrailWords());
  return words;
}

// Of one without: a recording of somebody else.
std::vector<std::string> WordsOfFlags(const ImportedTrace& trace,
                                      const ProcessFlags& flags) {
  const ImportedDump& last = trace.dumps[flags.last_dump];
  std::vector<std::string> words =
      WordsOf({.sampling_interval = last.sampling_interval,
               .original_sampling_interval = last.original_sampling_interval});
  if (flags.buffer_overran || flags.has_waited)
    words.push_back(FullBufferWords(flags.has_waited));
  if (flags.buffer_corrupted)
    words.push_back(DamagedBufferWords());
  if (flags.hit_guardrail)
    words.push_back(GuardrailWords());
  if (flags.has_foreign_stack)
    words.push_back(ForeignStackWords());
  return words;
}

uint64_t BlockTimeoutOf(const ImportedTrace& trace) {
  const Result<RecordingConfig> config =
      ParseTraceConfig(trace.trace_config, ConfigForm::kBinary);
  return config.ok() && !config.value().sessions.empty()
             ? config.value().sessions[0].block_timeout_us
             : 0;
}

// "server (pid 7): "; "" when there is one only.
std::string PrefixOf(const ImportedTrace& trace, uint32_t upid, size_t processes) {
  if (processes < 2)
    return "";
  const ImportedProcess& process = trace.processes[upid];
  const StringId name = process.name != kNoId ? process.name : process.cmdline;
  constexpr size_t kMostCharacters = 100;
  const std::string text =
      name == kNoId ? std::string("process")
                    : Cut(Printable(FileName(trace.Text(name))), kMostCharacters);
  return text + (process.pid > 0 ? " (pid " + std::to_string(process.pid) + "): " : ": ");
}

// Of functions without names, as far as the recorders knew.
void AddRemedies(const ImportedTrace& trace, std::vector<UnnamedRemedy>* remedies) {
  constexpr size_t kMost = 2000;
  FileAdvice advice;
  for (uint32_t upid = 0; upid < trace.processes.size(); ++upid) {
    const uint32_t end = trace.processes[upid].end;
    if (end == kNoId)
      continue;
    std::vector<const UnnamedModule*> modules;
    for (const UnnamedModule& module : trace.process_ends[end].unnamed)
      modules.push_back(&module);
    std::ranges::stable_sort(modules, std::greater(), &UnnamedModule::unnamed_frames);
    for (const UnnamedModule* const module : modules) {
      std::string text = advice.Of(*module);
      if (!text.empty() && remedies->size() < kMost)
        remedies->push_back(
            {.upid = upid, .path = module->path, .text = std::move(text)});
    }
  }
}

}  // namespace

void TellOfRecordings(const ImportedTrace& trace, ReportOptions* options) {
  std::vector<std::string> lines;
  const std::map<uint32_t, ProcessFlags> processes = FlagsByProcess(trace);
  const uint64_t block_timeout_us = BlockTimeoutOf(trace);
  const std::map<uint32_t, double> live = LiveAtEnd(trace);
  size_t left_out = 0;
  for (const auto& [upid, flags] : processes) {
    const bool has_figures = trace.dumps[flags.last_dump].quality != kNoId;
    const std::string prefix = PrefixOf(trace, upid, processes.size());
    for (const std::string& words :
         has_figures ? WordsOfFigures(trace, flags, live, block_timeout_us)
                     : WordsOfFlags(trace, flags)) {
      if (lines.size() < kMostToldLines)
        lines.push_back(prefix + words);
      else
        ++left_out;
    }
  }
  if (left_out > 0)
    lines.push_back("and " + std::to_string(left_out) +
                    " more of these; heap_profile query has all in "
                    "heap_profile_quality and heap_dump");
  if (trace.recording_end) {
    for (std::string& warning : UnrecordedWarnings(trace.recording_end->unrecorded))
      lines.push_back(std::move(warning));
  }
  AddRemedies(trace, &options->remedies);
  std::erase_if(options->warnings, IsToldByFigures);
  options->warnings.insert(options->warnings.begin(), lines.begin(), lines.end());
}

}  // namespace heapprofd
