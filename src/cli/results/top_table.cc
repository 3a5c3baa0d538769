#include "cli/results/top_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/format.h"
#include "base/text.h"
#include "cli/results/top_list.h"
#include "cli/text_layout.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

constexpr double kPeakFirst = 1.2;  // times the end, as in the report
constexpr size_t kNameWidth = 46;   // where there is no terminal
constexpr size_t kMinNameWidth = 16;
constexpr size_t kMaxNameWidth = 120;
constexpr size_t kRankWidth = 6;
constexpr size_t kBytesWidth = 14;
constexpr size_t kNarrowBytesWidth = 10;
constexpr size_t kNarrow = 60;  // columns
constexpr size_t kCallerWidth = 40;
constexpr size_t kMinCallerWidth = 12;  // less of a name says nothing

size_t BytesWidth(const SummaryOptions& options) {
  return options.width == 0 || options.width >= kNarrow ? kBytesWidth : kNarrowBytesWidth;
}

size_t NameWidth(const SummaryOptions& options) {
  if (options.width == 0)
    return kNameWidth;
  const size_t others = kRankWidth + 2 + BytesWidth(options) + 5;
  return std::clamp(options.width - std::min(options.width, others), kMinNameWidth,
                    kMaxNameWidth);
}

// The title and the columns' names; in two lines where they have no room in one.
std::string TableHead(const std::string& title,
                      size_t width,
                      const SummaryOptions& options) {
  const std::string names = Pad("live", BytesWidth(options)) + "share\n";
  const size_t room = width + kRankWidth + 2;
  return "\n  " +
         (title.size() + 2 < room ? Pad(title, room - 2)
                                  : title + "\n" + std::string(room, ' ')) +
         names;
}

// As many as the line has room for, the nearest one in any case.
std::string CallersLine(const TopEntry& entry, const SummaryOptions& options) {
  const std::string arrow = options.use_unicode ? "← " : "<- ";
  std::string line(kRankWidth, ' ');
  for (const std::string& caller : entry.callers) {
    const size_t used = Columns(line) + Columns(arrow) + 1;
    const bool is_first = &caller == entry.callers.data();
    size_t room = kCallerWidth;
    if (options.width != 0)
      room = std::min(room, options.width - std::min(used, options.width));
    if (!is_first && room < std::min(kMinCallerWidth, caller.size()))
      break;
    line += (is_first ? "" : " ") + arrow +
            Cut(Printable(caller), std::max(room, kMinCallerWidth));
  }
  return line + "\n";
}

// `total`: of all entries, those that are not shown included; `shown_total`: what was
// said of it, within what exact counts allow.
std::string FormatTable(const std::string& title,
                        const std::vector<TopEntry>& entries,
                        double total,
                        double shown_total,
                        const SummaryOptions& options) {
  const double scale = total > 0 ? shown_total / total : 1;
  const auto holds_nothing = [scale](const TopEntry& entry) {
    return entry.live.bytes * scale <= 0.5;  // shown as 0 B
  };
  if (std::ranges::all_of(entries, holds_nothing))
    return "";
  const size_t width = NameWidth(options);
  std::string text = TableHead(title, width, options);
  for (size_t i = 0; i < entries.size(); ++i) {
    const TopEntry& entry = entries[i];
    if (holds_nothing(entry))
      break;  // and those behind it, which hold less
    std::string name = Cut(Printable(entry.function), width);
    if (!entry.location.empty() && name.size() + entry.location.size() + 2 <= width)
      name += "  " + Printable(entry.location);
    std::array<char, 32> rank{};
    snprintf(rank.data(), rank.size(), "  %2zu  ", i + 1);
    text += rank.data() + Pad(name, width) + "  " +
            Pad(FormatBytes(entry.live.bytes * scale), BytesWidth(options)) +
            FormatShare(entry.live.bytes, total) + "\n";
    if (!entry.callers.empty())
      text += CallersLine(entry, options);
  }
  return text;
}

// Who held the peak; "" where the end tells the same.
std::string FormatPeakTable(const TargetProfile& profile,
                            const HeapDump& dump,
                            const SummaryOptions& options) {
  const double peak = dump.peak_total.bytes;
  if (!options.dump_at_max && (peak <= 0 || peak < kPeakFirst * LiveTotal(dump).bytes))
    return "";
  double most = 0;
  for (const auto& [callsite, estimate] : dump.peak)
    most += estimate.bytes;
  if (most <= 0 && peak > 0 && options.top > 0)
    return "\n  Who held the memory at the peak is not known.\n";
  return FormatTable("Top live memory at peak", TopAtPeak(profile, dump, options.top),
                     most, peak > 0 ? peak : most, options);
}

}  // namespace

std::string FormatTopTables(const TargetProfile& profile,
                            const HeapDump& dump,
                            const SummaryOptions& options) {
  double live = 0;
  for (const auto& [callsite, totals] : dump.callsites)
    live += totals.live().bytes;
  return FormatPeakTable(profile, dump, options) +
         FormatTable("Top live memory at end", TopByLiveBytes(profile, dump, options.top),
                     live, LiveTotal(dump).bytes, options);
}

}  // namespace heapprofd
