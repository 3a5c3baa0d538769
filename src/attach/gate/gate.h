// Gives every exec of the machine its permission (fanotify), those that somebody watches
// for when he has said so or kMaxHoldNs later. Whoever watches may be hostile, and so may
// be whoever executes: nothing here waits for anybody, and everything is bounded.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attach/gate/exec_names.h"
#include "attach/gate/gate_messages.h"
#include "attach/gate/held_execs.h"
#include "base/scoped_fd.h"

namespace heapprofd {

class Gate {
 public:
  static constexpr size_t kMaxWatchers = 256;

  // Has a file system watched, by a path in it; all of them no longer when it is null.
  // False: errno says why.
  using Mark = std::function<bool(const char* path)>;

  // `control`: from our owner (kWatchRequest). `group`: of fanotify.
  Gate(ScopedFd control, ScopedFd group, Mark mark);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Serves everybody once, waiting at most `max_wait_ms` (-1: no limit) when there is
  // nothing to do. False: the owner is gone.
  bool Turn(int max_wait_ms);

  // Programs may be waiting for us.
  bool is_watching() const { return !watchers_.empty(); }

 private:
  struct Watcher {
    ScopedFd socket;
    ScopedFd pipe;       // from him
    std::string unread;  // of his next message
    ScopedFd mounts;     // invalid: all have been marked
    uint64_t mounts_until_ns = 0;
    ExecNames names;
    bool has_names = false;
    bool is_ready = false;
    bool is_incomplete = false;  // not all mounts have been found in time
    uint32_t answers_left = 0;
    uint64_t missed = 0;
  };

  void AnswerEvents();
  void Answer(ScopedFd file, pid_t tid);
  // Takes the file if there is room for one more, and he reads.
  bool Hold(
      Watcher& watcher, ScopedFd* file, pid_t tid, uid_t user, const std::string& path);
  int WaitMs(int max_wait_ms) const;

  bool HearOwner();
  void AddWatcher(std::vector<ScopedFd> fds);
  // False: the watcher is to go.
  bool Serve(Watcher& watcher, const pollfd* fds);
  bool Hear(Watcher& watcher);
  bool TakeNames(Watcher& watcher, std::string_view bytes);
  bool Obey(Watcher& watcher, std::string_view bytes);
  void MarkMounts(Watcher& watcher, bool is_readable);
  void NoteLeftOut();
  bool BeReady(Watcher& watcher);
  void Remove(size_t index);
  void CollectFds();

  ScopedFd control_;
  ScopedFd group_;
  Mark mark_;
  size_t marks_ = 0;
  int mark_error_ = 0;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  HeldExecs held_;  // for them
  std::vector<char> buffer_;
  std::vector<pollfd> fds_;
};

}  // namespace heapprofd
