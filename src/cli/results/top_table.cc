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
constexpr double kLittle = 10;          // so much less is no difference
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

struct Table {
  std::string title;
  std::string column = "live";  // what the bytes are
  std::vector<TopEntry> entries;
  double total = 0;        // of all entries, those that are not shown included
  double shown_total = 0;  // what was said of it, within what exact counts allow
};

// The title and the columns' names; in two lines where they have no room in one.
std::string TableHead(const Table& table, size_t width, const SummaryOptions& options) {
  const std::string& title = table.title;
  const std::string names = Pad(table.column, BytesWidth(options)) + "share\n";
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

std::string FormatTable(const Table& table, const SummaryOptions& options) {
  const double scale = table.total > 0 ? table.shown_total / table.total : 1;
  const auto holds_nothing = [scale](const TopEntry& entry) {
    return entry.live.bytes * scale <= 0.5;  // shown as 0 B
  };
  if (std::ranges::all_of(table.entries, holds_nothing))
    return "";
  const size_t width = NameWidth(options);
  std::string text = TableHead(table, width, options);
  for (size_t i = 0; i < table.entries.size(); ++i) {
    const TopEntry& entry = table.entries[i];
    if (holds_nothing(entry))
      break;  // and those behind it, which hold less
    std::string name = Cut(Printable(entry.function), width);
    if (!entry.location.empty() && name.size() + entry.location.size() + 2 <= width)
      name += "  " + Printable(entry.location);
    std::array<char, 32> rank{};
    snprintf(rank.data(), rank.size(), "  %2zu  ", i + 1);
    text += rank.data() + Pad(name, width) + "  " +
            Pad(FormatBytes(entry.live.bytes * scale), BytesWidth(options)) +
            FormatShare(entry.live.bytes, table.total) + "\n";
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
  return FormatTable({.title = "Top live memory at peak",
                      .entries = TopAtPeak(profile, dump, options.top),
                      .total = most,
                      .shown_total = peak > 0 ? peak : most},
                     options);
}

std::string IdleLine(const HeapDump& dump, double bytes, double live) {
  const IdleBlocks& idle = dump.idle;
  if (idle.since_ns == 0)
    return "idle memory: not known; there was no second look at it";
  const auto seconds = [](uint64_t from_ns, uint64_t to_ns) {
    return static_cast<double>(to_ns - std::min(from_ns, to_ns)) / 1e9;
  };
  const double idle_s = seconds(idle.since_ns, idle.until_ns);
  const double ago_s = seconds(idle.until_ns, dump.end_ns);
  const std::string line =
      "idle memory: " + FormatBytes(bytes) + " of live " + FormatBytes(live) +
      " were not touched " +
      (ago_s <= idle_s / kLittle ? "in the last " + FormatDuration(idle_s)
                                 : "for " + FormatDuration(idle_s) + " until " +
                                       FormatDuration(ago_s) + " before the end");
  const double unseen = std::min(idle.unseen_bytes, live - bytes);
  return unseen < 0.5 ? line
                      : line + "; " + FormatBytes(unseen) + " could not be looked at";
}

// Who holds what nobody has touched lately; "" where nobody asked.
std::string FormatIdle(const TargetProfile& profile,
                       const HeapDump& dump,
                       const SummaryOptions& options) {
  if (!dump.idle.was_asked_for)
    return "";
  const double live = LiveTotal(dump).bytes;
  const double shown = IdleTotal(dump);
  const std::string begin = "  ";
  const std::string line = IdleLine(dump, shown, live);
  return "\n" + begin +
         (options.width == 0 ? line : Wrap(line, begin.size(), options.width)) + "\n" +
         FormatTable({.title = "Top idle memory",
                      .column = "idle",
                      .entries = TopIdle(profile, dump, options.top),
                      .total = IdleSum(dump),
                      .shown_total = shown},
                     options);
}

}  // namespace

std::string FormatTopTables(const TargetProfile& profile,
                            const HeapDump& dump,
                            const SummaryOptions& options) {
  double live = 0;
  for (const auto& [callsite, totals] : dump.callsites)
    live += totals.live().bytes;
  return FormatPeakTable(profile, dump, options) +
         FormatTable({.title = "Top live memory at end",
                      .entries = TopByLiveBytes(profile, dump, options.top),
                      .total = live,
                      .shown_total = LiveTotal(dump).bytes},
                     options) +
         FormatIdle(profile, dump, options);
}

}  // namespace heapprofd
