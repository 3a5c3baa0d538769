#include "service/desk_door.h"

#include <poll.h>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr int kMessagesPerTurn = 256;
constexpr size_t kMaxWaitingOfUser = 4096;
constexpr uint64_t kAnswerNs = 10'000'000'000;  // with a gate that has to be started
constexpr int kAgainMs = 10;                    // when the front desk has no room
constexpr uint64_t kTurnNs = 20'000'000;  // letting in; then those inside have their turn

}  // namespace

int DeskDoor::MillisecondsToNext() const {
  if (!is_empty() || !early_.empty())
    return 0;
  return is_told_ ? -1 : kAgainMs;
}

void DeskDoor::Serve(Host& host) {
  TellRecordings();
  Receive(host);
  AdmitSome(host);
}

// Without a front desk nobody comes any more, and what was recorded is to be kept.
void DeskDoor::Receive(Host& host) {
  for (int i = 0; i < kMessagesPerTurn && !is_closed_; ++i) {
    Result<std::optional<LinkMessage>> message = NextMessage();
    if (message.ok() && !message.value())
      return;
    if (message.ok()) {
      Handle(std::move(*message.value()), host);
    } else {
      may_leave_ = true;
      host.Leave();
      return;
    }
  }
}

Result<std::optional<LinkMessage>> DeskDoor::NextMessage() {
  if (early_.empty())
    return link_.Receive();
  std::optional<LinkMessage> message = std::move(early_.front());
  early_.pop_front();
  return message;
}

Result<GateEnds> DeskDoor::Watch() {
  const Status no_answer(
      StatusCode::kUnavailable,
      "cannot watch for new processes: the service does not answer; try again");
  const uint64_t deadline_ns = MonotonicNs() + kAnswerNs;
  if (!link_.Send({.type = LinkType::kWatch}))
    return no_answer;
  while (MonotonicNs() < deadline_ns) {
    pollfd readable{.fd = link_.fd(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, kAgainMs);
    Result<std::optional<LinkMessage>> message = link_.Receive();
    if (!message.ok())
      return no_answer;
    if (!message.value())
      continue;
    if (message.value()->type != LinkType::kWatcher) {
      early_.push_back(std::move(*message.value()));
      continue;
    }
    std::vector<ScopedFd>& fds = message.value()->fds;
    if (fds.size() != 2)
      return Status(StatusCode::kUnavailable, message.value()->text);
    return GateEnds{.socket = std::move(fds[0]), .pipe = std::move(fds[1])};
  }
  return no_answer;
}

void DeskDoor::Handle(LinkMessage message, Host& host) {
  switch (message.type) {
    case LinkType::kVisitor: {
      ++visitors_;
      others_ = message.number;
      Result<Visitor> visitor = TakeVisitor(std::move(message));
      if (visitor.ok())
        Enqueue(std::move(visitor).value());
      return;
    }
    case LinkType::kTaken:
      return host.NoteTaken(static_cast<pid_t>(message.number));
    case LinkType::kDump:
      return host.DumpAll(message.text);
    case LinkType::kKnown:
      unanswered_ -= unanswered_ > 0 ? 1 : 0;
      return;
    case LinkType::kLeave:
      may_leave_ = visitors_ == said_idle_at_;
      return;
    default:
      return;
  }
}

void DeskDoor::Enqueue(Visitor visitor) {
  std::deque<Visitor>& queue = waiting_[visitor.rights.user];
  if (queue.size() >= kMaxWaitingOfUser)
    Decline(visitor);
  else
    queue.push_back(std::move(visitor));
}

// One of each user in turn.
void DeskDoor::AdmitSome(Host& host) {
  const uint64_t end_ns = MonotonicNs() + kTurnNs;
  while (!waiting_.empty() && MonotonicNs() < end_ns) {
    auto next = waiting_.upper_bound(last_served_);
    if (next == waiting_.end())
      next = waiting_.begin();
    last_served_ = next->first;
    Visitor visitor = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty())
      waiting_.erase(next);
    host.Admit(std::move(visitor));
  }
  for (auto& [user, queue] : waiting_) {
    for (Visitor& visitor : queue)
      TellToWait(visitor);
  }
}

void DeskDoor::LeaveToParent() {
  link_ = Link(ScopedFd());
  is_closed_ = true;
  waiting_.clear();
  early_.clear();
}

void DeskDoor::PassOn(Visitor visitor) {
  if (!link_.Send({.type = LinkType::kPassOn}, {visitor.connection.get()}))
    Decline(visitor);
}

void DeskDoor::SayTaken(const Visitor& visitor) {
  const uint64_t user = visitor.rights.user;
  const bool ignored =
      link_.Send({.type = LinkType::kTakenHere,
                  .number = user << 32 | static_cast<uint32_t>(visitor.pid)});
  static_cast<void>(ignored);  // a note is missing in another recording
}

void DeskDoor::SetRecordings(size_t count, bool has_begun) {
  recordings_ = count;
  has_begun_ |= has_begun;
  is_told_ = false;
  TellRecordings();
}

// Until the front desk knows, it sends nobody.
void DeskDoor::TellRecordings() {
  if (is_told_ || !link_.Send({.type = LinkType::kRecordings,
                               .number = recordings_,
                               .text = has_begun_ ? "+" : ""}))
    return;
  is_told_ = true;
  has_begun_ = false;
  ++unanswered_;
}

size_t DeskDoor::DumpOthers(const std::string& label) {
  return link_.Send({.type = LinkType::kDumpOthers, .text = label}) ? others_ : 0;
}

void DeskDoor::SayIdle() {
  if (said_idle_at_ == visitors_)
    return;
  if (link_.Send({.type = LinkType::kIdle, .number = visitors_}))
    said_idle_at_ = visitors_;
}

}  // namespace heapprofd
