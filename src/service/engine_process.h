// The engine of one user as the front desk sees it: a process of its own with that user's
// rights and nothing of anybody else's, which runs his recordings (service.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/status.h"
#include "service/link.h"
#include "service/visitor_queue.h"

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

  // Whether one more visitor of this user may wait here.
  bool HasRoomFor(uid_t user) const;

  // A program of this user had no room here, or has waited for too long.
  void TellMissed(pid_t pid, uid_t user);

  // Hands the visitor over, now or when there is room. A program's connection is kept
  // until the engine has answered it.
  void Send(Visitor visitor);

  // In order and without loss: an engine that does not read is ended.
  void Say(LinkMessage message);

  // A turn: sends what waits. Gives visitors that have waited for too long, or for an
  // engine that is gone; they are for somebody else.
  std::deque<Visitor> Serve();

  // The program with this number is no longer its own; nullopt: it never was.
  std::optional<Visitor> TakeBack(uint64_t number);

  // Of visitors.
  uint64_t sent() const { return sent_; }

  // Somebody has to wait.
  bool is_full() const { return !waiting_.empty(); }

  // Until Serve should be called in any case; -1: no need.
  int MillisecondsToNext() const;

  uint64_t recordings = 0;             // as it has said
  uint64_t unanswered = 0;             // of what it has said about them
  uint64_t watch = 0;                  // ticket of its question to the exec gate; 0: none
  bool is_leaving = false;             // it was told so: nothing more is sent
  bool is_of_other_namespace = false;  // see IsOfOtherNamespace

  // Its process is gone, and forgotten by the kernel.
  bool HasEnded();

  // Nothing comes from it any more. What it has started ends with it.
  void Kill();

 private:
  EngineProcess(const Rights& rights, Link link, pid_t pid)
      : rights_(rights), link_(std::move(link)), pid_(pid) {}

  void SendWaiting();
  void SendMissed();

  Rights rights_;
  Link link_;
  pid_t pid_;  // 0: has ended
  uint64_t sent_ = 0;
  bool has_room_ = true;  // the link, as far as is known
  VisitorQueue waiting_;
  std::deque<pid_t> missed_;  // that it was not told of yet
  pid_t last_missed_ = 0;
  std::map<uint64_t, Visitor> unanswered_programs_;  // by number
};

}  // namespace heapprofd
