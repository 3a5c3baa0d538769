// The trace of a recording that goes on, as far as it has come: its processes with their
// heaps as they are now. Takes as much memory as one dump of them, however long it lasts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/inspect/restored_profile.h"
#include "import/perfetto/trace_importer.h"
#include "tables/trace_builder.h"

namespace heapprofd {

using LiveProcesses = std::vector<RestoredProfile*>;

// What a thread has allocated in all heaps of its process, and what of that is live,
// whoever frees it.
struct LiveThread {
  uint32_t upid = 0;
  uint32_t utid = kNoId;  // kNoId: those that are not told apart
  std::string name = {};  // "worker (thread 12)"; not yet fit to be shown
  uint64_t end_ns = 0;    // of the last dump
  double live = 0;        // bytes
  double objects = 0;     // live
  double allocated = 0;   // bytes, since the recording's start
};

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

  // Those that run, by the order in which they came; when none does, those that did last:
  // what they held at their end. Heaps are replaced by Update(), callsites and frames
  // stay.
  const LiveProcesses& processes() const { return shown_; }

  // Theirs.
  std::vector<LiveThread> Threads() const;

 private:
  Result<bool> ReadMore();
  void Import();
  void RestoreHeaps();
  std::set<uint32_t> ShownProcesses() const;
  std::string ThreadName(uint32_t utid) const;

  int fd_;
  int64_t position_ = 0;
  std::string unread_;  // begin of a packet whose end has not come
  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  TraceImporter importer_{&builder_};
  std::vector<bool> is_allocator_;
  std::optional<HeapSums> sums_;
  // Of those that have ended, too: what is shown of them may stand still.
  std::map<uint32_t, std::unique_ptr<RestoredProfile>> restored_;  // by upid
  LiveProcesses shown_;
  size_t dumps_known_ = 0;  // to have been read already
  uint64_t latest_ns_ = 0;
};

}  // namespace heapprofd
