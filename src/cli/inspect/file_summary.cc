#include "cli/inspect/file_summary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/results/process_order.h"
#include "cli/results/quality_words.h"
#include "cli/results/unnamed_modules.h"
#include "cli/results/unrecorded_text.h"
#include "config/recording_config.h"

namespace heapprofd {
namespace {

constexpr size_t kLeastPoints = 3;  // that make a line of the heap

// What was live at the dumps of the process's first heap.
std::vector<double> HistoryOf(const OpenedFile& file, const RestoredProfile& process) {
  const ImportedTrace& trace = file.trace();
  const std::vector<uint32_t> dumps =
      file.DumpsOf(process.upid(), process.profile().heaps[0].heap_name);
  if (dumps.size() < kLeastPoints)
    return {};
  std::vector<double> history;
  double live = 0;
  for (const uint32_t dump : dumps) {
    const ImportedDump& row = trace.dumps[dump];
    for (size_t i = 0; i < row.allocation_count; ++i)
      live += static_cast<double>(trace.allocations.size[row.first_allocation + i]);
    history.push_back(live);
  }
  return history;
}

ProcessResult ResultOf(const OpenedFile& file, const RestoredProfile& process) {
  ProcessResult result;
  result.profile = &process.profile();
  result.resident_kib = process.profile().memory.rss_kib;
  result.tells_end = file.tells_end();
  if (const ProcessEnd* end = process.end()) {
    result.history = end->history;
    result.resident_limit_kib = end->rss_limit_kib;
    result.symbols = SymbolsWithout(process.profile(), end->unnamed);
  } else {
    result.history = HistoryOf(file, process);
  }
  return result;
}

// What only the recorder knew, as far as the file tells.
void AddRecording(const ImportedTrace& trace,
                  const std::vector<ProcessResult>& results,
                  SummaryOptions* options) {
  if (!trace.recording_end)
    return;
  const RecordingEnd& end = *trace.recording_end;
  std::erase_if(options->warnings, IsToldByFigures);
  if (std::ranges::any_of(trace.dumps, &ImportedDump::hit_guardrail))
    options->warnings.push_back(GuardrailWords());
  options->program = ProgramBehindFirst(results, end.program_pid);
  options->largest = LargerThanFirst(results);
  for (std::string& warning : UnrecordedWarnings(end.unrecorded))
    options->warnings.push_back(std::move(warning));
  const Result<RecordingConfig> config =
      ParseTraceConfig(trace.trace_config, ConfigForm::kBinary);
  if (!config.ok() || config.value().sessions.empty())
    return;
  options->heaps = config.value().sessions[0].heaps;
  options->block_timeout_us = config.value().sessions[0].block_timeout_us;
}

// Those that its recorder has shown, in its order; where the file does not tell, all.
std::vector<const RestoredProfile*> ShownProcesses(const OpenedFile& file) {
  std::vector<const RestoredProfile*> shown;
  for (const auto& process : file.processes) {
    if (process->end() != nullptr)
      shown.push_back(process.get());
  }
  std::sort(shown.begin(), shown.end(),
            [](const auto* a, const auto* b) { return a->end() < b->end(); });
  if (shown.empty() || !HasSamples(shown[0]->profile())) {
    shown.clear();
    for (const auto& process : file.processes)
      shown.push_back(process.get());
  } else {  // of a part of the file that has lost its end, or of another recording
    for (const auto& process : file.processes) {
      if (process->end() == nullptr && HasSamples(process->profile()))
        shown.push_back(process.get());
    }
  }
  return shown;
}

}  // namespace

std::string FormatFile(const OpenedFile& file, SummaryOptions options) {
  std::vector<ProcessResult> results;
  for (const RestoredProfile* process : ShownProcesses(file))
    results.push_back(ResultOf(file, *process));
  options.seconds = file.seconds();
  options.dump_at_max = file.is_at_maximum();
  options.warnings = file.warnings;
  AddRecording(file.trace(), results, &options);
  return FormatSummary(results, options);
}

}  // namespace heapprofd
