// The engine of one user as the front desk sees it: a process of its own with that user's
// rights and nothing of anybody else's, which runs his recordings (service.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "base/status.h"
#include "service/link.h"

namespace heapprofd {

class EngineProcess {
 public:
  // Runs in the new process, which has the user's rights and, of descriptors, the
  // standard ones and the link; gives its exit code.
  using Main = std::function<int(Link link)>;

  static Result<std::unique_ptr<EngineProcess>> Start(const Rights& rights,
                                                      const Main& main);

  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  const Rights& rights() const { return rights_; }

  const Link& link() const { return link_; }

  // Hands the visitor over, now or when there is room. Whoever waits too long, or is one
  // of too many, is sent away.
  void Send(Visitor visitor, uint64_t others);

  // Hands over those that wait.
  void SendWaiting();

  // Of visitors.
  uint64_t sent() const { return sent_; }

  bool is_full() const { return !waiting_.empty(); }

  uint64_t recordings = 0;  // as it has said
  uint64_t unanswered = 0;  // of what it has said about them
  uint64_t watch = 0;       // ticket of its question to the exec gate; 0: none
  bool is_leaving = false;  // it was told so: nothing more is sent

  // Its process is gone, and forgotten by the kernel.
  bool HasEnded();

  // Nothing comes from it any more. What it has started ends with it.
  void Kill();

 private:
  struct Waiting {
    Visitor visitor;
    uint64_t others;
    uint64_t deadline_ns;
  };

  EngineProcess(const Rights& rights, Link link, pid_t pid)
      : rights_(rights), link_(std::move(link)), pid_(pid) {}

  Rights rights_;
  Link link_;
  pid_t pid_;  // 0: has ended
  uint64_t sent_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace heapprofd
