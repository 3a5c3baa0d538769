// The processes that finish recordings (names, pprof files, summary), one each. They work
// for as long as it takes, but not for ever: what they write to may be a pipe that nobody
// reads, and files may have been made to be slow.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"

namespace heapprofd {

class Finishers {
 public:
  // Does `work` in one, the leader of its process group, which ends with it, and with us.
  // kIo: there can be none.
  Status Begin(const std::function<void()>& work);

  size_t count() const { return running_.size(); }

  // Until Reap should be called in any case; -1: no need.
  int MillisecondsToNext() const;

  // Forgets those that have ended; ends those that take too long.
  void Reap();

  // Waits for all, at most until then (MonotonicNs): afterwards they stop looking for
  // names, and are killed if that does not end them. What was recorded is in the trace by
  // then.
  void AwaitAll(uint64_t deadline_ns);

 private:
  struct Finisher {
    pid_t pid;
    uint64_t started_ns;
    bool is_told = false;  // to come to an end
  };

  void EndAfter(Finisher& finisher, uint64_t limit_ns);

  std::vector<Finisher> running_;
};

}  // namespace heapprofd
