// The door of one user's engine: the front desk hands visitors over, and forwards what
// concerns others. Visitors are let in by turns of their users, so that nobody waits for
// a crowd of somebody else's.
#pragma once

#include <functional>
#include <optional>

#include "service/door.h"
#include "service/link.h"
#include "service/visitor_queue.h"

namespace heapprofd {

class DeskDoor : public Door {
 public:
  explicit DeskDoor(Link link) : link_(std::move(link)) {}

  void AddTo(std::vector<pollfd>* fds) const override {
    fds->push_back({.fd = is_closed_ ? -1 : link_.fd(), .events = POLLIN, .revents = 0});
  }

  int MillisecondsToNext() const override;

  void Serve(Host& host) override;

  bool is_empty() const override { return waiting_.empty(); }

  void Close() override { is_closed_ = true; }

  void LeaveToParent() override;
  void SetRecordings(size_t count, bool has_begun) override;

  bool are_recordings_known() const override { return is_told_ && unanswered_ == 0; }

  Result<GateEnds> Watch(const std::function<void()>& between) override;
  size_t DumpOthers(const std::string& label) override;

  // Asks to leave, now and then while nothing changes; the front desk agrees, unless
  // somebody is on his way here.
  void SayIdle();

  // It has agreed, or it is gone.
  bool may_leave() const { return may_leave_; }

 private:
  void Receive(Host& host);
  void Handle(LinkMessage message, Host& host);
  void Say(LinkMessage message);
  void AdmitSome(Host& host);
  void TellRecordings();

  Link link_;
  bool is_closed_ = false;
  bool may_leave_ = false;
  bool is_all_sent_ = true;             // nothing waits for room on the link
  uint64_t visitors_ = 0;               // so far
  uint64_t said_idle_at_ = ~0ull;       // visitors_ when it was said
  uint64_t idle_again_ns_ = 0;          // then it is said again
  bool is_watching_ = false;            // somebody waits for a kWatcher
  std::optional<LinkMessage> watcher_;  // which has come
  uint64_t others_ = 0;                 // recordings, when the last visitor came
  uint64_t recordings_ = 0;
  bool has_begun_ = false;   // one of them, and that was not told yet
  bool is_told_ = true;      // of the number of recordings
  uint64_t unanswered_ = 0;  // of what was told
  VisitorQueue waiting_;
};

}  // namespace heapprofd
