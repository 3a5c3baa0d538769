// Something that is done for us with the rights of another process's user, by a process
// of its own: the messenger. What it is led to there (links, other people's sockets, file
// systems that never answer) can make it do nothing that this user could not do, and can
// hold up nobody else: it is waited for with a bound and ended.
//
// The messenger outlives us: whatever ends us, it sees that, cleans up behind itself, and
// ends too. No signal of a terminal or a service manager reaches it before.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// The messenger's view of those who have sent it.
class Sender {
 public:
  explicit Sender(ScopedFd socket) : socket_(std::move(socket)) {}

  // What is being done now, in a few words, for those who wait.
  void Tell(const std::string& stage) const;

  void TellResult(const Result<std::string>& result) const;

  // Waits until one of `fds` has what it is asked for, or its other end is gone, and
  // fills in which. kTryAgain: not before `deadline_ns` (CLOCK_MONOTONIC; kAsLong: as
  // long as the sender waits). kUnavailable: nobody waits for us any longer.
  Status Await(std::span<pollfd> fds, uint64_t deadline_ns) const;
  Status Await(int fd, short events, uint64_t deadline_ns) const;
  static constexpr uint64_t kAsLong = UINT64_MAX;

  // The same without anything to wait for.
  Status Pause(uint64_t ns) const;

 private:
  ScopedFd socket_;
};

struct Errand {
  uid_t user = 0;  // as whom
  gid_t group = 0;
  std::vector<int> kept = {};  // descriptors that it needs
  // In the messenger. Short texts only.
  std::function<Result<std::string>(const Sender& sender)> run = nullptr;
};

// How long, and how, it is waited for.
struct ErrandWait {
  // Anything that changes while it goes on.
  std::function<uint64_t()> progress = nullptr;
  uint64_t patience_ns = 0;  // without progress
  // Now and then, with what is being done.
  std::function<void(const std::string& stage)> show = nullptr;
  int stop_fd = -1;  // readable: it is no longer wanted
};

// What it results in. kTryAgain: it took too long; the message is what was done last.
// kUnavailable: it was stopped.
Result<std::string> RunErrand(const Errand& errand, const ErrandWait& wait);

}  // namespace heapprofd
