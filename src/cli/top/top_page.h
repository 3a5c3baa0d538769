// What the live view shows and what its keys do; no terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/top/live_rows.h"
#include "cli/top/screen.h"

namespace heapprofd {

struct TopStyle {
  bool use_unicode = true;
  bool use_color = false;
};

// What is said above the rows.
struct TopFacts {
  std::string what;  // "python3 (pid 12), 1 sample per 4.00 KiB"; fit to be shown
  double seconds = 0;
  bool has_figures = false;  // a dump has come
  LiveFigures total;
};

// What a key asks of others.
enum class TopRequest : uint8_t { kNothing, kQuit, kSnapshot };

class TopPage {
 public:
  explicit TopPage(TopStyle style) : style_(style) {}

  // Of another look; not called while is_paused().
  void Show(const LiveRows& rows, const TopFacts& facts);

  // A line for the user until the next key, fit to be shown.
  void Say(const std::string& message) { message_ = message; }

  // One key, or the sequence of one. What it asks of others.
  TopRequest Press(const std::string& key);

  std::vector<std::string> Lines(const ScreenSize& size);

  bool is_paused() const { return is_paused_; }

  LiveOrder order() const { return order_; }

  const std::string& filter() const { return filter_; }

  // The chosen order or filter is another than that of the rows shown.
  bool is_outdated() const { return is_outdated_; }

 private:
  struct Line {
    std::string text;            // fit to be shown, of any width
    const char* mark = nullptr;  // sequence before it, where there is colour
  };

  TopRequest PressInFilter(const std::string& key);
  TopRequest PressInTable(const std::string& key);
  void Move(int64_t by);
  size_t Chosen() const;

  bool HasStacks() const { return kind_ == LiveKind::kFunctions; }

  std::vector<Line> Table(const ScreenSize& size);
  std::vector<Line> Stack(size_t height) const;
  std::string LastLine() const;
  std::string KindName() const;
  std::string Shown(const std::string& name) const;

  TopStyle style_;
  TopFacts facts_;
  std::vector<LiveRow> rows_;
  LiveKind kind_ = LiveKind::kFunctions;
  LiveOrder order_ = LiveOrder::kLive;
  std::string filter_;
  LiveRow chosen_;    // as it was then
  size_t first_ = 0;  // row on the screen
  size_t page_ = 1;   // rows on the screen
  bool is_paused_ = false;
  bool is_outdated_ = false;
  bool asks_filter_ = false;
  bool shows_stack_ = false;
  std::string message_;
};

// The keys in what a terminal has sent: characters, and the sequences of others, each
// behind the other.
std::vector<std::string> KeysOf(const std::string& bytes);

// The same for whoever has no terminal: the facts, and the first rows of `count`.
std::string PlainTable(const LiveRows& rows,
                       const TopFacts& facts,
                       size_t count,
                       const TopStyle& style);

}  // namespace heapprofd
