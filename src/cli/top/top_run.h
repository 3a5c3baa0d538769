// The live view from its first look to its end: asks the recording for a dump each
// second, shows what has come, and does what keys and signals ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/top/live_heap_view.h"
#include "cli/top/recorder_process.h"
#include "cli/top/screen.h"
#include "cli/top/top_events.h"
#include "cli/top/top_page.h"

namespace heapprofd {

struct TopOptions {
  bool has_screen = false;  // else lines, as they come
  uint32_t rows = 10;       // of each table of lines
  uint32_t count = 0;       // tables; 0: any number
  uint64_t interval_bytes = 0;
  TopStyle style = {};
  SymbolizeOptions symbols = {};
};

class TopRun {
 public:
  TopRun(RecorderProcess* recorder, TopOptions options);

  // Gives the exit code, the recorder's, or 128 + signal when one has ended us.
  int Run();

 private:
  bool IsOver() const { return is_over_ || signal_ != 0; }

  void TakeSignals();
  void TakeKeys();
  void Suspend();
  void Look();
  void LookAgain();
  void Show();
  void Redraw();
  void TakeSnapshot();
  int End();
  TopFacts Facts() const;
  int MillisecondsToNext() const;

  RecorderProcess* recorder_;
  TopOptions options_;
  TopEvents events_;
  LiveHeapView view_;
  std::optional<Screen> screen_;
  TopPage page_;
  uint64_t started_ns_;
  uint64_t look_ns_ = 0;     // when to look next
  uint64_t request_ns_ = 0;  // when to ask for the next dump
  uint32_t shown_ = 0;       // tables
  int signal_ = 0;           // that has ended us
  bool is_over_ = false;
  bool is_told_ = false;  // the recorder, too, by the terminal
  Status status_;
};

}  // namespace heapprofd
