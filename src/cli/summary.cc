#include "cli/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <unordered_set>

#include "base/format.h"
#include "base/text.h"
#include "cli/heap_notes.h"
#include "cli/top_list.h"

namespace heapprofd {
namespace {

constexpr double kIntervalFactor = 1.96;  // 95 % of a normal distribution
constexpr size_t kSparkWidth = 24;
constexpr size_t kNameWidth = 46;
constexpr size_t kOtherProcesses = 8;
constexpr size_t kOtherHeaps = 8;

const HeapDump* DumpOf(const ProcessResult& process) {
  return process.profile->heaps.empty() ? nullptr : &process.profile->heaps[0];
}

Estimate LiveTotal(const HeapDump& dump) {
  Estimate total;
  for (const auto& [callsite, totals] : dump.callsites)
    total += totals.live();
  return total;
}

std::string ProgramName(const TargetProfile& profile) {
  const std::string& name = profile.process.cmdline.empty() ? profile.process.executable
                                                            : profile.process.cmdline[0];
  return Printable(name.substr(name.rfind('/') + 1));
}

// " (±1.1%)": half the width of the 95 % interval.
std::string FormatError(const Estimate& estimate, bool use_unicode) {
  if (estimate.bytes < 1 || estimate.bytes_variance <= 0)
    return "";
  const double half = kIntervalFactor * std::sqrt(estimate.bytes_variance);
  return std::string(" (") + (use_unicode ? "±" : "+-") +
         FormatShare(half, estimate.bytes) + ")";
}

std::string Sparkline(const std::vector<double>& values) {
  constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.size() < 2)
    return "";
  const double top = *std::max_element(values.begin(), values.end());
  if (top <= 0)
    return "";
  std::string line;
  const size_t width = std::min(kSparkWidth, values.size());
  for (size_t i = 0; i < width; ++i) {
    const size_t begin = i * values.size() / width;
    const size_t end = std::max(begin + 1, (i + 1) * values.size() / width);
    const double value = *std::max_element(values.begin() + static_cast<ptrdiff_t>(begin),
                                           values.begin() + static_cast<ptrdiff_t>(end));
    line += kBlocks[std::min<size_t>(
        7, static_cast<size_t>(std::max(0.0, value) / top * 7.999))];
  }
  return line;
}

std::string Pad(const std::string& text, size_t width) {
  // Continuation bytes of UTF-8 take no column.
  const auto columns = static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

std::string Cut(const std::string& text, size_t width) {
  if (text.size() <= width)
    return text;
  size_t end = width - 3;
  while (end > 0 && (text[end] & 0xc0) == 0x80)  // between two characters
    --end;
  return text.substr(0, end) + "...";
}

std::string FormatTable(const ProcessResult& process,
                        const HeapDump& dump,
                        const SummaryOptions& options) {
  const std::vector<TopEntry> entries =
      TopByLiveBytes(*process.profile, dump, options.top);
  if (entries.empty())
    return "";
  const double live = LiveTotal(dump).bytes;
  const std::string arrow = options.use_unicode ? "← " : "<- ";
  std::string text = "\n  " + Pad("Top live memory at end", kNameWidth + 6) +
                     Pad("live", 14) + "share\n";
  for (size_t i = 0; i < entries.size(); ++i) {
    const TopEntry& entry = entries[i];
    std::string name = Cut(Printable(entry.function), kNameWidth);
    if (!entry.location.empty() && name.size() + entry.location.size() + 2 <= kNameWidth)
      name += "  " + Printable(entry.location);
    std::array<char, 32> rank{};
    snprintf(rank.data(), rank.size(), "  %2zu  ", i + 1);
    text += rank.data() + Pad(name, kNameWidth) + "  " +
            Pad(FormatBytes(entry.live.bytes), 14) + FormatShare(entry.live.bytes, live) +
            "\n";
    std::string callers;
    for (const std::string& caller : entry.callers)
      callers += (callers.empty() ? "" : " ") + arrow + Cut(Printable(caller), 40);
    if (!callers.empty())
      text += "      " + callers + "\n";
  }
  return text;
}

std::string FormatFigures(const ProcessResult& process,
                          const HeapDump& dump,
                          const SummaryOptions& options) {
  const Estimate live = LiveTotal(dump);
  const double peak_after =
      static_cast<double>(dump.peak_ns -
                          std::min(dump.peak_ns, process.profile->process.start_ns)) /
      1e9;
  std::string text =
      "  " + Pad("live at end", 13) +
      Pad(FormatBytes(live.bytes) + FormatError(live, options.use_unicode), 24);
  text += "peak " + FormatBytes(dump.peak_total.bytes) + " at " +
          FormatDuration(peak_after) + "\n";
  text += "  " + Pad("allocated", 13) +
          FormatBytes(static_cast<double>(dump.exact_alloc_bytes)) + " in " +
          FormatCount(static_cast<double>(dump.exact_alloc_calls)) + " calls\n";
  const std::string spark = options.use_unicode ? Sparkline(process.history) : "";
  if (process.resident_kib != 0 || !spark.empty()) {
    const std::string resident =
        process.resident_kib != 0
            ? FormatBytes(static_cast<double>(process.resident_kib) * 1024)
            : "unknown";
    text += "  " + Pad("RSS", 13) + Pad(resident, 24) +
            (spark.empty() ? "" : "heap " + spark) + "\n";
  }
  return text;
}

std::string MemoryRow(const std::string& name, double bytes, const std::string& what) {
  const std::string size = FormatBytes(std::max(0.0, bytes));
  return "    " + Pad(name, 24) + (what.empty() ? size : Pad(size, 14) + what) + "\n";
}

// heapprofd vs malloc_info vs RSS: where the process's memory is, in parts that add up.
// "" unless the allocator was asked and has answered.
std::string FormatMemory(const MemoryContext& memory) {
  if (memory.allocator.empty())
    return "";
  const auto in_use = static_cast<double>(memory.allocator_in_use);
  const auto held = static_cast<double>(memory.allocator_free);
  const double total = static_cast<double>(memory.rss_kib + memory.swap_kib) * 1024;
  return "\n  Memory of the process, by " + memory.allocator + " and the kernel\n" +
         MemoryRow("requested, live", memory.requested, "what the program asked for") +
         MemoryRow("overhead and caches", in_use - memory.requested,
                   "headers, rounding, blocks in thread caches") +
         MemoryRow("fragmentation", held, "freed, held back by the allocator") +
         MemoryRow("the rest", total - in_use - held,
                   "code, stacks, mapped files, other allocators") +
         MemoryRow("RSS and swap", total, "");
}

std::string FormatInterval(const HeapDump& dump) {
  return dump.sampling_interval <= 1
             ? "every allocation"
             : "1 sample per " + FormatBytes(static_cast<double>(dump.sampling_interval));
}

// The heaps of a process behind its first one.
std::string FormatOtherHeaps(const ProcessResult& process,
                             const SummaryOptions& options) {
  ProcessResult without_history = process;  // which belongs to all heaps together
  without_history.history.clear();
  without_history.resident_kib = 0;
  std::string text;
  const std::vector<HeapDump>& heaps = process.profile->heaps;
  for (size_t i = 1; i < heaps.size() && i <= kOtherHeaps; ++i)
    text += "\n  heap " + Printable(heaps[i].heap_name) + ", " +
            FormatInterval(heaps[i]) + "\n" +
            FormatFigures(without_history, heaps[i], options) +
            FormatTable(without_history, heaps[i], options);
  if (heaps.size() > kOtherHeaps + 1)
    text += "\n  and " + std::to_string(heaps.size() - kOtherHeaps - 1) + " more heaps\n";
  return text;
}

ForkedChildren SumOfForked(const std::vector<ProcessResult>& processes) {
  ForkedChildren sum;
  for (const ProcessResult& process : processes) {
    const ForkedChildren& forked = process.profile->forked;
    sum.count += forked.count;
    sum.uncounted += forked.uncounted;
    sum.alloc_calls += forked.alloc_calls;
    sum.alloc_bytes += forked.alloc_bytes;
  }
  return sum;
}

// Children that have no row, and no other trace in the profile.
std::string FormatForked(const ForkedChildren& forked) {
  if (forked.alloc_calls == 0)
    return "";
  return "  also " + FormatCount(static_cast<double>(forked.count)) +
         (forked.count == 1 ? " forked child" : " forked children") +
         " that took no sample: allocated " +
         FormatBytes(static_cast<double>(forked.alloc_bytes)) + " in " +
         FormatCount(static_cast<double>(forked.alloc_calls)) + " calls, counted\n";
}

std::string FormatOthers(const std::vector<ProcessResult>& processes) {
  std::string text;
  for (size_t i = 1; i < processes.size() && i <= kOtherProcesses; ++i) {
    const HeapDump* dump = DumpOf(processes[i]);
    if (dump == nullptr)
      continue;
    text += "  also " +
            Pad(ProgramName(*processes[i].profile) + " (pid " +
                    std::to_string(processes[i].profile->process.pid) + ")",
                30) +
            "peak " + Pad(FormatBytes(dump->peak_total.bytes), 10) + " live at end " +
            FormatBytes(LiveTotal(*dump).bytes) + "\n";
  }
  if (processes.size() > kOtherProcesses + 1)
    text += "  and " + std::to_string(processes.size() - kOtherProcesses - 1) +
            " more processes\n";
  text += FormatForked(SumOfForked(processes));
  return text.empty() ? "" : "\n" + text;
}

// True when a process that never called malloc has more memory than any start needs.
bool HoldsMemoryOfItsOwn(const TargetProfile& profile) {
  constexpr uint64_t kMuchKib = 4096;
  const bool has_calls =
      std::any_of(profile.heaps.begin(), profile.heaps.end(),
                  [](const HeapDump& dump) { return dump.exact_alloc_calls > 0; });
  return !has_calls && profile.memory.anonymous_kib >= kMuchKib;
}

// Share of live and freed samples' callsites whose stacks hold a frame of these mappings
// without a name.
double UnnamedShare(const TargetProfile& profile,
                    const HeapDump& dump,
                    const ModuleSymbols& module) {
  const std::unordered_set<MappingId> mappings(module.mappings.begin(),
                                               module.mappings.end());
  double unnamed = 0;
  double total = 0;
  for (const auto& [callsite, totals] : dump.callsites) {
    total += totals.allocated.bytes;
    for (CallsiteId at = callsite; at != kNoId; at = profile.callsites[at].parent) {
      const Frame& frame = profile.frames[profile.callsites[at].frame];
      if (frame.lines.empty() && mappings.contains(frame.mapping)) {
        unnamed += totals.allocated.bytes;
        break;
      }
    }
  }
  return total > 0 ? unnamed / total : 0;
}

void AddSymbolWarning(const ProcessResult& process, std::vector<std::string>* warnings) {
  const HeapDump* dump = DumpOf(process);
  const ModuleSymbols* worst = nullptr;
  double worst_share = 0.01;  // less is not worth a line
  for (const ModuleSymbols& module : process.symbols.modules) {
    if (module.unnamed_frames == 0)
      continue;
    const double share = UnnamedShare(*process.profile, *dump, module);
    if (share > worst_share) {
      worst_share = share;
      worst = &module;
    }
  }
  if (worst == nullptr)
    return;
  warnings->push_back(
      FormatShare(worst_share, 1) +
      " of allocated bytes pass through functions without a name: " + worst->error);
}

}  // namespace

std::vector<std::string> QualityWarnings(const ProcessResult& process) {
  std::vector<std::string> warnings;
  const HeapDump* dump = DumpOf(process);
  if (dump == nullptr)
    return warnings;
  const Quality& quality = process.profile->quality;
  const auto samples = static_cast<double>(quality.samples);
  const bool has_waited = process.profile->client_fault == ClientFault::kHitTimeout;
  const char* waited = has_waited ? ", though the program waited," : "";
  const char* remedy = has_waited ? ", and do not stop the profiler" : "";
  if (quality.lost_records > 0)
    warnings.push_back(std::to_string(quality.lost_records) + " records (" +
                       std::to_string(quality.lost_samples) +
                       " samples) did not fit into the buffer" + waited +
                       " and are missing; raise "
                       "--shmem-size or --interval" +
                       remedy);
  if (dump->sampling_interval != dump->original_sampling_interval)
    warnings.push_back("the sampling interval was raised from " +
                       std::to_string(dump->original_sampling_interval) + " to " +
                       std::to_string(dump->sampling_interval) +
                       " bytes to keep up; start with --interval " +
                       std::to_string(dump->sampling_interval));
  if (quality.corrupt_records > 0)
    warnings.push_back(std::to_string(quality.corrupt_records) +
                       " records were damaged and left out: the program overwrote memory "
                       "or jumped out of a "
                       "signal handler");
  if (static_cast<double>(quality.truncated_stacks) > samples / 100)
    warnings.push_back(
        FormatShare(static_cast<double>(quality.truncated_stacks), samples) +
        " of the stacks lack their outermost frames: they are deeper than 512 frames or "
        "run on "
        "stacks the program made itself");
  if (static_cast<double>(quality.unwind_errors) > samples / 100)
    warnings.push_back(
        FormatShare(static_cast<double>(quality.unwind_errors), samples) +
        " of the stacks end early: code without unwind information; build it with "
        "-fasynchronous-unwind-tables");
  if (quality.agreed_samples < quality.checked_samples)
    warnings.push_back(std::to_string(quality.checked_samples - quality.agreed_samples) +
                       " of " + std::to_string(quality.checked_samples) +
                       " checked stacks disagreed with a full unwind");
  if (quality.threads_without_slot > 0)
    warnings.push_back(std::to_string(quality.threads_without_slot) +
                       " threads were not recorded: more than 4096 at once");
  if (quality.reports_without_slot > 0)
    warnings.push_back(std::to_string(quality.reports_without_slot) +
                       " allocations in the program's own heaps were not recorded: too "
                       "many threads use too many heaps; record fewer with --heaps");
  if (quality.refused_samples > 0)
    warnings.push_back(std::to_string(quality.refused_samples) +
                       " samples were left out: too many are live at once; record with a "
                       "larger --interval");
  if (quality.refused_dumps > 0)
    warnings.push_back(std::to_string(quality.refused_dumps) +
                       " dumps that the program asked for were not made: more than 1000, "
                       "or too large together");
  AddSymbolWarning(process, &warnings);
  return warnings;
}

namespace {

// What the rows of the other processes do not show: losses, and memory of which malloc
// knows nothing.
std::vector<std::string> WarningsOfOthers(const std::vector<ProcessResult>& processes) {
  std::vector<std::string> warnings;
  uint64_t lost = 0;
  std::string silent;
  size_t silent_count = 0;
  bool may_be_static = false;  // seen from their first allocation on, and none came
  for (size_t i = 1; i < processes.size(); ++i) {
    const TargetProfile& profile = *processes[i].profile;
    lost += profile.quality.lost_records + profile.quality.corrupt_records;
    if (!HoldsMemoryOfItsOwn(profile))
      continue;
    may_be_static |= profile.from_startup;
    constexpr size_t kMaxNames = 3;
    if (++silent_count <= kMaxNames)
      silent += (silent.empty() ? "" : ", ") + ProgramName(profile) + " (pid " +
                std::to_string(profile.process.pid) + ")";
  }
  if (const uint64_t uncounted = SumOfForked(processes).uncounted; uncounted > 0)
    warnings.push_back(std::to_string(uncounted) +
                       " forked children were not even counted: more than 4096 were "
                       "there at once");
  if (lost > 0)
    warnings.push_back(std::to_string(lost) +
                       " records of the other processes are missing; raise --shmem-size "
                       "or --interval");
  if (silent_count > 0)
    warnings.push_back(
        std::to_string(silent_count) +
        (silent_count == 1 ? " process has" : " processes have") +
        " memory, but called no allocation function that can be seen: " + silent +
        "; they allocated nothing meanwhile, or keep pools of their own" +
        (may_be_static ? ", or have an allocator linked statically" : ""));
  return warnings;
}

}  // namespace

std::string FormatSummary(const std::vector<ProcessResult>& processes,
                          const SummaryOptions& options) {
  const ProcessResult& first = processes[0];
  const HeapDump* dump = DumpOf(first);
  if (dump == nullptr)
    return "";
  std::string text = "Recorded " + FormatDuration(options.seconds) + " of " +
                     ProgramName(*first.profile) + " (pid " +
                     std::to_string(first.profile->process.pid) + "), heap " +
                     Printable(dump->heap_name) + ", ";
  text += FormatInterval(*dump);
  text += "\n\n" + FormatFigures(first, *dump, options) +
          FormatMemory(first.profile->memory) + FormatTable(first, *dump, options) +
          FormatOtherHeaps(first, options) + FormatOthers(processes);
  std::vector<std::string> warnings = QualityWarnings(first);
  for (std::string& warning : WarningsOfOthers(processes))
    warnings.push_back(std::move(warning));
  warnings.insert(warnings.end(), options.warnings.begin(), options.warnings.end());
  for (const ProcessResult& process : processes) {
    for (const std::string& note : HeapNotes(*process.profile, options.heaps)) {
      if (std::find(warnings.begin(), warnings.end(), note) == warnings.end())
        warnings.push_back(note);
    }
  }
  if (!warnings.empty())
    text += "\n";
  for (const std::string& warning : warnings)
    text += "  ! " + Printable(warning) + "\n";
  text += "\n  trace  " + Printable(options.trace_path) + "  (open in ui.perfetto.dev)\n";
  for (const std::string& path : options.pprof_paths)
    text += "  pprof  " + Printable(path) + "  (go tool pprof, speedscope.app)\n";
  return PrintableLines(text);
}

}  // namespace heapprofd
