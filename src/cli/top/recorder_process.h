// The recording behind the live view: an ordinary one, in a process of its own, whose
// trace goes to memory and is read as it grows. What the program notices of it, and what
// is left in it, is what any recording does. It dumps when asked, so that a view that is
// paused or suspended costs nothing and fills nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "cli/record/options.h"

namespace heapprofd {

class RecorderProcess {
 public:
  // `owns_terminal`: the program that is started neither reads from the terminal nor
  // writes to it. Signals must be as they are for programs: they are taken afterwards.
  static Result<RecorderProcess> Start(const Options& options, bool owns_terminal);

  RecorderProcess(RecorderProcess&&) = default;
  RecorderProcess& operator=(RecorderProcess&&) = delete;
  // Whoever has not ended by then is killed.
  ~RecorderProcess();

  // The trace, to be read from the beginning and to be emptied behind the reader.
  int trace_fd() const { return trace_.get(); }

  // Before there is something in the trace nobody listens, and none comes.
  void RequestDump() const;

  // Asks it to end, in order.
  void Stop() const;

  // Its exit code, if it has ended. For a caller who has got SIGCHLD.
  bool HasEnded();

  // Waits for its end, which is enforced when it takes too long.
  void AwaitEnd();

  // When it has ended.
  int exit_code() const { return exit_code_; }

  // What it has said until now, at most 64 KiB of it.
  std::string Messages() const;

 private:
  RecorderProcess(pid_t pid, ScopedFd trace, ScopedFd messages)
      : pid_(pid), trace_(std::move(trace)), messages_(std::move(messages)) {}

  pid_t pid_;  // -1: it is no more
  ScopedFd trace_;
  ScopedFd messages_;
  int exit_code_ = 0;
};

}  // namespace heapprofd
