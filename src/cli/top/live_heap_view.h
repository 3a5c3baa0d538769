// The live view's picture of a recording: what has come of its trace, as rows with names.
#pragma once

#include <cstdint>
#include <utility>

#include "base/status.h"
#include "cli/top/live_names.h"
#include "cli/top/live_rows.h"
#include "cli/top/live_trace.h"

namespace heapprofd {

class LiveHeapView {
 public:
  // What a look has found.
  struct News {
    bool has_dumps = false;  // rows have other figures
    bool has_names = false;  // rows have other names
  };

  // As LiveTrace and LiveNames take them.
  LiveHeapView(int trace_fd, SymbolizeOptions symbols)
      : trace_(trace_fd), names_(std::move(symbols)) {}

  // kCorrupt: it is no trace.
  Result<News> Look();

  // When nothing comes any more: at what was not looked at yet, with as many names as
  // there are.
  void LookForLastTime();

  const LiveTrace& trace() const { return trace_; }

  const LiveProcesses& processes() const { return trace_.processes(); }

  const LiveRows& rows() const { return rows_; }

 private:
  LiveTrace trace_;
  LiveRows rows_;
  LiveNames names_;
  bool has_more_ = false;  // dumps that were not looked at yet
  uint64_t looked_ns_ = 0;
};

}  // namespace heapprofd
