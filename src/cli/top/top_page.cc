#include "cli/top/top_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "base/format.h"
#include "base/text.h"
#include "cli/results/top_list.h"
#include "cli/text_layout.h"

namespace heapprofd {
namespace {

constexpr size_t kOtherLines = 5;   // of the table: above and below its rows
constexpr size_t kMaxFilter = 200;  // bytes
constexpr size_t kTopFigureWidth = 13;
constexpr char kBoldHead[] = "\033[1m";
constexpr char kInverse[] = "\033[7m";
constexpr char kNoMark[] = "\033[m";
constexpr char kUpKey[] = "\033[A";
constexpr char kDownKey[] = "\033[B";
constexpr char kPageUpKey[] = "\033[5~";
constexpr char kPageDownKey[] = "\033[6~";

std::string ToTheRight(const std::string& text) {
  return text.size() < kTopFigureWidth
             ? std::string(kTopFigureWidth - text.size(), ' ') + text
             : " " + text;
}

std::string SignedBytes(double bytes) {
  if (std::abs(bytes) < 0.5)
    return "0 B";
  return (bytes < 0 ? "-" : "+") + FormatBytes(std::abs(bytes));
}

using FigureColumns = std::vector<LiveOrder>;

// Those that leave room for names: on a narrow screen the first ones, and the one that rows
// are ordered by.
FigureColumns ColumnsThatFit(size_t width, LiveOrder order) {
  constexpr size_t kLeastNames = 24;
  FigureColumns columns = {LiveOrder::kLive, LiveOrder::kChange, LiveOrder::kPerSecond,
                           LiveOrder::kObjects};
  while (columns.size() > 1 && columns.size() * kTopFigureWidth + kLeastNames > width)
    columns.erase(columns.end() - (columns.back() == order ? 2 : 1));
  return columns;
}

// Sampled sums of what is freed may fall below nothing.
std::string FigureText(const LiveFigures& figures, LiveOrder column) {
  switch (column) {
    case LiveOrder::kLive:
      return FormatBytes(std::max(0.0, figures.live));
    case LiveOrder::kChange:
      return SignedBytes(figures.change);
    case LiveOrder::kPerSecond:
      return figures.per_second ? FormatBytes(*figures.per_second) : "-";
    case LiveOrder::kObjects:
      break;
  }
  return FormatCount(std::max(0.0, figures.objects));
}

std::string FiguresText(const LiveFigures& figures, const FigureColumns& columns) {
  std::string text;
  for (const LiveOrder column : columns)
    text += ToTheRight(FigureText(figures, column));
  return text + "  ";
}

std::string TableHead(LiveOrder order,
                      const FigureColumns& columns,
                      const std::string& kind) {
  std::string text;
  for (const LiveOrder column : columns) {
    const char* const title = column == LiveOrder::kLive        ? "live"
                              : column == LiveOrder::kChange    ? "change"
                              : column == LiveOrder::kPerSecond ? "allocated/s"
                                                                : "objects";
    text += ToTheRight(std::string(order == column ? "*" : "") + title);
  }
  return text + "  " + kind;
}

std::string TotalsText(const TopFacts& facts) {
  return ClockText(facts.seconds) + "  live " +
         FormatBytes(std::max(0.0, facts.total.live)) + "  change " +
         SignedBytes(facts.total.change) +
         (facts.total.per_second
              ? "  allocated " + FormatBytes(*facts.total.per_second) + "/s  "
              : "  ") +
         FormatCounted(std::max(0.0, facts.total.objects), "object", "objects");
}

// Without anything that steers the terminal, and in its characters.
std::string FitToShow(const std::string& name, bool use_unicode) {
  std::string text = Printable(name);
  if (!use_unicode)
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  return text;
}

}  // namespace

std::vector<std::string> KeysOf(const std::string& bytes) {
  std::vector<std::string> keys;
  for (size_t at = 0; at < bytes.size();) {
    size_t end = at + 1;
    if (bytes[at] == '\033' && end < bytes.size() &&
        (bytes[end] == '[' || bytes[end] == 'O')) {
      ++end;
      while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~'))
        ++end;
      end = std::min(end + 1, bytes.size());
    }
    std::string key = bytes.substr(at, end - at);
    if (key.size() == 3 && key[1] == 'O')  // keypads in their other mode
      key[1] = '[';
    keys.push_back(std::move(key));
    at = end;
  }
  return keys;
}

std::string TopPage::Shown(const std::string& name) const {
  return FitToShow(name, style_.use_unicode);
}

void TopPage::Show(const LiveRows& rows, const TopFacts& facts) {
  facts_ = facts;
  rows_ = rows.Sorted(kind_, order_, filter_);
  is_outdated_ = false;
}

TopRequest TopPage::Press(const std::string& key) {
  message_.clear();
  if (asks_filter_)
    return PressInFilter(key);
  if (shows_stack_) {
    shows_stack_ = false;
    return key == "q" ? TopRequest::kQuit : TopRequest::kNothing;
  }
  return PressInTable(key);
}

TopRequest TopPage::PressInFilter(const std::string& key) {
  const auto first = static_cast<unsigned char>(key[0]);
  if (key == "\n" || key == "\r") {
    asks_filter_ = false;
  } else if (key == "\033") {
    asks_filter_ = false;
    filter_.clear();
  } else if (key == "\x7f" || key == "\b") {
    while (!filter_.empty() && (filter_.back() & 0xc0) == 0x80)
      filter_.pop_back();
    if (!filter_.empty())
      filter_.pop_back();
  } else if (key.size() == 1 && first >= ' ' && filter_.size() < kMaxFilter) {
    filter_ += key;
  }
  is_outdated_ = true;
  return TopRequest::kNothing;
}

TopRequest TopPage::PressInTable(const std::string& key) {
  constexpr std::array<std::pair<char, LiveOrder>, 4> kOrders = {
      {{'t', LiveOrder::kLive},
       {'d', LiveOrder::kChange},
       {'a', LiveOrder::kPerSecond},
       {'o', LiveOrder::kObjects}}};
  for (const auto& [letter, order] : kOrders) {
    if (key[0] != letter)
      continue;
    is_outdated_ |= order_ != order;
    order_ = order;
  }
  if (key == "q")
    return TopRequest::kQuit;
  if (key == "s")
    return TopRequest::kSnapshot;
  if (key == " ")
    is_paused_ = !is_paused_;
  if (key == "h") {
    kind_ = kind_ == LiveKind::kThreads ? LiveKind::kFunctions : LiveKind::kThreads;
    is_outdated_ = true;
  }
  if (key == "f" || key == "/")
    asks_filter_ = true;
  if (key == "\n" || key == "\r")
    shows_stack_ = HasStacks() && !rows_.empty();
  if (key == kUpKey || key == "k")
    Move(-1);
  if (key == kDownKey || key == "j")
    Move(1);
  if (key == kPageUpKey)
    Move(-static_cast<int64_t>(page_));
  if (key == kPageDownKey)
    Move(static_cast<int64_t>(page_));
  return TopRequest::kNothing;
}

// The chosen row follows its function or thread, wherever that is; without it the first
// one is chosen.
size_t TopPage::Chosen() const {
  const auto chosen =
      std::find_if(rows_.begin(), rows_.end(),
                   [this](const LiveRow& row) { return row.IsSame(chosen_); });
  return chosen == rows_.end() ? 0 : static_cast<size_t>(chosen - rows_.begin());
}

void TopPage::Move(int64_t by) {
  if (rows_.empty())
    return;
  const auto last = static_cast<int64_t>(rows_.size()) - 1;
  const int64_t at = static_cast<int64_t>(Chosen()) + by;
  chosen_ = rows_[static_cast<size_t>(std::clamp<int64_t>(at, 0, last))];
}

std::vector<std::string> TopPage::Lines(const ScreenSize& size) {
  std::vector<Line> all = shows_stack_ ? Stack(size.rows) : Table(size);
  all.resize(std::max<size_t>(size.rows, 1) - 1);
  all.push_back({LastLine()});
  std::vector<std::string> lines;
  for (const Line& line : all) {
    const std::string text = Cut(line.text, size.columns);
    const bool is_marked = style_.use_color && line.mark != nullptr;
    lines.push_back(is_marked ? line.mark + text + kNoMark : text);
  }
  return lines;
}

std::vector<TopPage::Line> TopPage::Table(const ScreenSize& size) {
  const FigureColumns columns = ColumnsThatFit(size.columns, order_);
  page_ = size.rows > kOtherLines ? size.rows - kOtherLines : 1;
  const size_t chosen = Chosen();
  first_ = std::clamp(first_, chosen - std::min(chosen, page_ - 1), chosen);
  std::vector<Line> lines = {{Shown(facts_.what), kBoldHead},
                             {TotalsText(facts_) + (is_paused_ ? "  paused" : "")},
                             {},
                             {"  " + TableHead(order_, columns, KindName()), kBoldHead}};
  for (size_t i = first_; i < rows_.size() && i < first_ + page_; ++i)
    lines.push_back({(i == chosen ? "> " : "  ") +
                         FiguresText(rows_[i].figures, columns) + Shown(rows_[i].name),
                     i == chosen ? kInverse : nullptr});
  if (rows_.empty())
    lines.push_back({!facts_.has_figures ? "  no figures have come yet"
                     : filter_.empty() ? "  nothing is live that was allocated meanwhile"
                                       : "  no " + KindName() + " has " + Shown(filter_) +
                                             " in its name"});
  return lines;
}

std::vector<TopPage::Line> TopPage::Stack(size_t height) const {
  if (rows_.empty() || rows_[Chosen()].profile == nullptr)
    return {{"  nothing is chosen"}};
  const LiveRow& row = rows_[Chosen()];
  std::vector<Line> lines = {{"  The largest stack of " + Shown(row.name)}, {}};
  for (const StackFunction& function :
       StackNames(*row.profile).HolderStack(row.callsite)) {
    if (lines.size() + 3 > height) {
      lines.push_back({"  ..."});
      break;
    }
    lines.push_back(
        {"  " + Shown(function.label) +
         (function.module.empty() ? "" : "  (" + Shown(function.module) + ")")});
  }
  return lines;
}

std::string TopPage::KindName() const {
  return kind_ == LiveKind::kThreads ? "thread" : "function";
}

std::string TopPage::LastLine() const {
  if (asks_filter_)
    return "filter: " + Shown(filter_) + (style_.use_unicode ? "▏" : "_");
  if (!message_.empty())
    return message_;
  if (shows_stack_)
    return "any key: back   q: quit";
  return "by: t d a o  h " +
         std::string(kind_ == LiveKind::kThreads ? "functions" : "threads") +
         "  f filter" + (filter_.empty() ? "" : " (" + Shown(filter_) + ")") +
         (HasStacks() ? "  Enter stack" : "") + "  space pause  s snapshot  q quit";
}

std::string PlainTable(const LiveRows& rows,
                       const TopFacts& facts,
                       size_t count,
                       const TopStyle& style) {
  std::string text =
      TotalsText(facts) + "  " + FitToShow(facts.what, style.use_unicode) + "\n";
  std::vector<LiveRow> sorted = rows.Sorted(LiveKind::kFunctions, LiveOrder::kLive, "");
  sorted.resize(std::min(sorted.size(), count));
  const FigureColumns all = ColumnsThatFit(SIZE_MAX, LiveOrder::kLive);
  if (!sorted.empty())
    text += TableHead(LiveOrder::kLive, all, "function") + "\n";
  for (const LiveRow& row : sorted)
    text += FiguresText(row.figures, all) + FitToShow(row.name, style.use_unicode) + "\n";
  return text + "\n";
}

}  // namespace heapprofd
