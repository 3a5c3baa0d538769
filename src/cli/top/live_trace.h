// The trace of a recording that goes on, as far as it has come: its processes with their
// heaps as they are now. Takes as much memory as one dump of them, however long it lasts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/inspect/restored_profile.h"
#include "import/perfetto/trace_importer.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class LiveTrace {
 public:
  // `fd`: the trace's file, to be read from its beginning; what has been read is given
  // back to the system.
  explicit LiveTrace(int fd);

  // Reads what has come. True: heaps have been dumped anew. kCorrupt: it is no trace.
  Result<bool> Update();

  // Something has come at all: the recording has begun.
  bool has_begun() const { return position_ > 0; }

  // Of the latest dump, on the trace's clock, ns; 0: there is none.
  uint64_t latest_ns() const { return latest_ns_; }

  // By the order in which they came. Heaps are replaced by Update(), callsites and frames
  // stay.
  const std::vector<std::unique_ptr<RestoredProfile>>& processes() const {
    return processes_;
  }

 private:
  Result<bool> ReadMore();
  void Import();
  void RestoreHeaps();

  int fd_;
  int64_t position_ = 0;
  std::string unread_;  // begin of a packet whose end has not come
  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  TraceImporter importer_{&builder_};
  std::vector<bool> is_allocator_;
  std::vector<std::unique_ptr<RestoredProfile>> processes_;
  std::map<uint32_t, size_t> by_upid_;
  size_t dumps_known_ = 0;  // to have been read already
  uint64_t latest_ns_ = 0;
};

}  // namespace heapprofd
