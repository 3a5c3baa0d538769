#include "cli/results/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/format.h"
#include "base/text.h"
#include "cli/results/heap_notes.h"
#include "cli/results/process_name.h"
#include "cli/results/quality_warnings.h"
#include "cli/results/top_table.h"
#include "cli/text_layout.h"
#include "profile/block_shapes.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

constexpr size_t kFigureWidth = 24;
constexpr size_t kSparkWidth = 24;
constexpr size_t kOtherProcesses = 8;
constexpr size_t kOtherHeaps = 8;

const HeapDump* DumpOf(const ProcessResult& process) {
  return process.profile->heaps.empty() ? nullptr : &process.profile->heaps[0];
}

// " (±1.1%)": the longer side of the 95 % interval; " (≤15.0 KiB)", its upper end, where
// that is more than the figure itself. What is missing is in no interval.
std::string FormatError(const ProcessResult& process,
                        const BoundedBytes& figure,
                        bool use_unicode) {
  if (IsIncomplete(process.profile->quality))
    return " (incomplete)";
  const double side = std::max(figure.high - figure.bytes, figure.bytes - figure.low);
  if (side < 0.5)
    return "";
  if (side >= figure.bytes)
    return std::string(" (") + (use_unicode ? "≤" : "<=") + FormatBytes(figure.high) +
           ")";
  return std::string(" (") + (use_unicode ? "±" : "+-") +
         FormatShare(side, figure.bytes) + ")";
}

std::string FormatFigure(const ProcessResult& process,
                         const BoundedBytes& figure,
                         const SummaryOptions& options) {
  return FormatBytes(figure.bytes) + FormatError(process, figure, options.use_unicode);
}

double LiveCount(const HeapDump& dump) {
  double count = 0;
  for (const auto& [callsite, totals] : dump.callsites)
    count += totals.live().count;
  return count;
}

std::string FormatLive(const ProcessResult& process,
                       const HeapDump& dump,
                       const SummaryOptions& options) {
  const BoundedBytes live = LiveTotal(dump);
  if (process.tells_end && !dump.told.live_size)
    return dump.told.live_count
               ? "unknown size, " + FormatCounted(LiveCount(dump), "object", "objects")
               : "unknown";
  if (process.tells_end)
    return FormatFigure(process, live, options);
  return live.high > 0
             ? FormatBytes(dump.certain_live) + " to " + FormatBytes(dump.possible_live)
             : "unknown";
}

// " peak 61.8 MiB (±0.8%) at 945 ms"; "" when the file does not tell.
std::string FormatPeak(const ProcessResult& process,
                       const HeapDump& dump,
                       const SummaryOptions& options) {
  if (dump.peak_ns == 0 && dump.peak_total.bytes <= 0)
    return "";
  const uint64_t start_ns = process.profile->process.start_ns;
  const double after =
      static_cast<double>(dump.peak_ns - std::min(dump.peak_ns, start_ns)) / 1e9;
  return "peak " + FormatFigure(process, dump.peak_total, options) +
         (dump.peak_ns == 0 ? "" : " at " + FormatDuration(after));
}

// Said where it is some of them, and known to some percent.
std::string FormatTemporary(const HeapDump& dump) {
  constexpr double kLeast = 0.01;
  constexpr double kLargestError = 0.05;  // one standard error
  const Estimate temporary = TemporaryBlocks(dump);
  const auto calls = static_cast<double>(dump.exact_alloc_calls);
  if (temporary.count < kLeast * calls ||
      std::sqrt(temporary.count_variance) > kLargestError * calls)
    return "";
  return ", " + FormatShare(std::min(temporary.count, calls), calls) + " temporary";
}

// Counted by the recorder; else as far as samples tell, which may be no calls.
std::string FormatAllocated(const HeapDump& dump) {
  const Estimate allocated = AllocatedTotal(dump);
  if (!dump.told.alloc_size)
    return dump.told.alloc_count
               ? "unknown size in " + FormatCounted(allocated.count, "call", "calls")
               : "unknown";
  if (!dump.told.alloc_count || (allocated.count <= 0 && allocated.bytes > 0))
    return FormatBytes(allocated.bytes);
  return FormatBytes(allocated.bytes) + " in " +
         FormatCounted(allocated.count, "call", "calls") +
         (dump.exact_alloc_calls > 0 ? FormatTemporary(dump) : " (estimate)");
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

// "": nothing is known of it.
std::string FormatResident(const ProcessResult& process) {
  const auto text = [](uint64_t kib) {
    return FormatBytes(static_cast<double>(kib) * 1024);
  };
  if (process.resident_kib != 0)
    return text(process.resident_kib);
  return process.resident_limit_kib == 0 ? ""
                                         : "at most " + text(process.resident_limit_kib) +
                                               " (it ended before it was looked at)";
}

// Long lines are broken where there is a terminal, and left to scripts as they are.
std::string Line(const std::string& begin,
                 const std::string& text,
                 const SummaryOptions& options) {
  return begin + (options.width == 0 ? text : Wrap(text, begin.size(), options.width)) +
         "\n";
}

constexpr size_t kTitleWidth = 13;

// "  RSS          7.84 MiB                heap ▂▂▂"; where both have no room in a line, in two.
std::string FigureRow(const std::string& title,
                      const std::string& figure,
                      const std::string& more,
                      const SummaryOptions& options) {
  const std::string begin = "  " + Pad(title, kTitleWidth);
  if (more.empty())
    return Line(begin, figure, options);
  // At least two blanks are between them.
  std::string line = begin + Pad(figure + "  ", kFigureWidth) + more + "\n";
  if (options.width == 0 || Columns(line) - 1 <= options.width)
    return line;
  const size_t rest = options.width - std::min(options.width, 2 + Columns(more));
  return begin + figure + "\n  " + std::string(std::min(kTitleWidth, rest), ' ') + more +
         "\n";
}

std::string FormatFigures(const ProcessResult& process,
                          const HeapDump& dump,
                          const SummaryOptions& options) {
  const std::string peak = FormatPeak(process, dump, options);
  const std::string live = FormatLive(process, dump, options);
  std::string text = FigureRow("live at end", live, peak, options);
  text += FigureRow("allocated", FormatAllocated(dump), "", options);
  const std::string spark = options.use_unicode ? Sparkline(process.history) : "";
  const std::string resident = FormatResident(process);
  if (!resident.empty() || !spark.empty())
    text += FigureRow("RSS", resident.empty() ? "unknown" : resident,
                      spark.empty() ? "" : "heap " + spark, options);
  return text;
}

// A row whose end goes to a line of its own where both have no room in one.
std::string RowOfTwo(const std::string& begin,
                     size_t begin_width,
                     const std::string& end,
                     const SummaryOptions& options) {
  constexpr size_t kIndent = 4;
  const std::string line = Pad(begin, begin_width) + end;
  if (options.width == 0 || Columns(line) <= options.width)
    return line + "\n";
  return Cut(begin, options.width) + "\n" + std::string(kIndent, ' ') +
         Wrap(end, kIndent, options.width) + "\n";
}

std::string MemoryRow(const std::string& name,
                      double bytes,
                      const std::string& what,
                      const SummaryOptions& options) {
  const std::string begin = "    " + Pad(name, 24) + FormatBytes(std::max(0.0, bytes));
  return what.empty() ? begin + "\n" : RowOfTwo(begin, 42, what, options);
}

// heapprofd vs malloc_info vs RSS: where the process's memory is, in parts that add up.
// "" unless the allocator was asked and has answered.
std::string FormatMemory(const TargetProfile& profile, const SummaryOptions& options) {
  const MemoryContext& memory = profile.memory;
  if (memory.allocator.empty())
    return "";
  const auto in_use = static_cast<double>(memory.allocator_in_use);
  const auto held = static_cast<double>(memory.allocator_free);
  const double total = static_cast<double>(memory.rss_kib + memory.swap_kib) * 1024;
  const auto row = [&options](const char* name, double bytes, const char* what) {
    return MemoryRow(name, bytes, what, options);
  };
  return "\n" +
         Line("  ", "Memory of the process, by " + memory.allocator + " and the kernel",
              options) +
         row("requested, live", memory.requested,
             profile.from_startup ? "what the program asked for"
                                  : "what it asked for since then") +
         row(profile.from_startup ? "overhead and caches" : "earlier, and overhead",
             in_use - memory.requested,
             profile.from_startup ? "headers, rounding, blocks in thread caches"
                                  : "allocated before the recording; headers, caches") +
         row("fragmentation", held, "freed, held back by the allocator") +
         row("the rest", total - in_use - held,
             "code, stacks, mapped files, other allocators") +
         row("RSS and swap", total, "");
}

std::string FormatInterval(const HeapDump& dump) {
  if (dump.sampling_interval == 0)  // another program's file
    return "";
  return dump.sampling_interval == 1
             ? ", every allocation"
             : ", 1 sample per " +
                   FormatBytes(static_cast<double>(dump.sampling_interval));
}

// The heaps of a process behind its first one.
std::string FormatOtherHeaps(const ProcessResult& process,
                             const SummaryOptions& options) {
  ProcessResult without_history = process;  // which belongs to all heaps together
  without_history.history.clear();
  without_history.resident_kib = without_history.resident_limit_kib = 0;
  std::string text;
  const std::vector<HeapDump>& heaps = process.profile->heaps;
  for (size_t i = 1; i < heaps.size() && i <= kOtherHeaps; ++i)
    text += "\n" +
            Line("  ", "heap " + Printable(heaps[i].heap_name) + FormatInterval(heaps[i]),
                 options) +
            FormatFigures(without_history, heaps[i], options) +
            FormatTopTables(*process.profile, heaps[i], options);
  if (heaps.size() > kOtherHeaps + 1)
    text += "\n  and " +
            FormatCounted(static_cast<double>(heaps.size() - kOtherHeaps - 1),
                          "more heap", "more heaps") +
            "\n";
  return text;
}

ForkedChildren SumOfForked(const std::vector<ProcessResult>& processes) {
  ForkedChildren sum;
  for (const ProcessResult& process : processes) {
    const ForkedChildren& forked = process.profile->forked;
    sum.count += forked.count;
    sum.alloc_calls += forked.alloc_calls;
    sum.alloc_bytes += forked.alloc_bytes;
  }
  return sum;
}

// Children that have no row, and no other trace in the profile.
std::string FormatForked(const ForkedChildren& forked, const SummaryOptions& options) {
  if (forked.alloc_calls == 0)
    return "";
  return Line(
      "  also ",
      FormatCounted(static_cast<double>(forked.count), "forked child",
                    "forked children") +
          " that took no sample: allocated " +
          FormatBytes(static_cast<double>(forked.alloc_bytes)) + " in " +
          FormatCounted(static_cast<double>(forked.alloc_calls), "call", "calls") +
          ", counted",
      options);
}

std::string FormatOthers(const std::vector<ProcessResult>& processes,
                         const SummaryOptions& options) {
  std::string text;
  for (size_t i = 1; i < processes.size() && i <= kOtherProcesses; ++i) {
    const HeapDump* dump = DumpOf(processes[i]);
    if (dump == nullptr)
      continue;
    const bool tells_live = processes[i].tells_end && dump->told.live_size;
    text += RowOfTwo(
        "  also " + ProcessName(*processes[i].profile), 37,
        "peak " +
            Pad(LacksPeak(*dump) ? "unknown" : FormatBytes(dump->peak_total.bytes), 10) +
            " live at end " +
            (tells_live ? FormatBytes(LiveTotal(*dump).bytes) : "unknown"),
        options);
  }
  if (processes.size() > kOtherProcesses + 1)
    text += "  and " +
            FormatCounted(static_cast<double>(processes.size() - kOtherProcesses - 1),
                          "more process", "more processes") +
            "\n";
  text += FormatForked(SumOfForked(processes), options);
  return text.empty() ? "" : "\n" + text;
}

// The program that the user has named, and the process whose figures follow.
std::string Headline(const TargetProfile& profile,
                     const HeapDump& dump,
                     const SummaryOptions& options) {
  const std::string shown = ProcessName(profile);
  return (options.seconds > 0 ? "Recorded " + FormatDuration(options.seconds) + " of "
                              : "Profile of ") +
         (options.program.empty()
              ? shown
              : options.program + "; the most memory was in " + shown) +
         ", heap " + Printable(dump.heap_name) + FormatInterval(dump) +
         (options.largest.empty() ? "" : "; more memory was in " + options.largest);
}

std::vector<std::string> AllWarnings(const std::vector<ProcessResult>& processes,
                                     const SummaryOptions& options) {
  std::vector<std::string> warnings =
      QualityWarnings(processes[0], options.block_timeout_us);
  for (std::string& warning : WarningsOfOthers(processes))
    warnings.push_back(std::move(warning));
  warnings.insert(warnings.end(), options.warnings.begin(), options.warnings.end());
  for (const ProcessResult& process : processes) {
    for (const std::string& note : HeapNotes(*process.profile, options.heaps)) {
      if (std::find(warnings.begin(), warnings.end(), note) == warnings.end())
        warnings.push_back(note);
    }
  }
  return warnings;
}

}  // namespace

std::string FormatSummary(const std::vector<ProcessResult>& processes,
                          const SummaryOptions& options) {
  const ProcessResult& first = processes[0];
  const HeapDump* dump = DumpOf(first);
  if (dump == nullptr)
    return "";
  std::string text = Line("", Headline(*first.profile, *dump, options), options);
  text += "\n" + FormatFigures(first, *dump, options) +
          FormatMemory(*first.profile, options) +
          FormatTopTables(*first.profile, *dump, options) +
          FormatOtherHeaps(first, options) + FormatOthers(processes, options);
  const std::vector<std::string> warnings = AllWarnings(processes, options);
  if (!warnings.empty())
    text += "\n";
  for (const std::string& warning : warnings)
    text += Line("  ! ", Printable(warning), options);
  return PrintableLines(text);
}

}  // namespace heapprofd
