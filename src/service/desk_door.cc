#include "service/desk_door.h"

#include <poll.h>

#include <utility>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr int kMessagesOfDesk = 256;            // in one turn
constexpr uint64_t kAnswerNs = 10'000'000'000;  // with a gate that has to be started
constexpr int kAgainMs = 10;                    // when the front desk has no room
constexpr uint64_t kAdmitNs = 20'000'000;  // of a turn; then those inside have theirs
constexpr uint64_t kIdleAgainNs = 2'000'000'000;

LinkType TypeOf(Reply reply) {
  switch (reply) {
    case Reply::kUnwanted:
      return LinkType::kPassOn;
    case Reply::kTaken:
      return LinkType::kTakenHere;
    case Reply::kSentAway:
      break;
  }
  return LinkType::kAnswered;
}

}  // namespace

int DeskDoor::MillisecondsToNext() const {
  if (!is_empty())
    return 0;
  if (!is_told_ || !is_all_sent_)
    return kAgainMs;
  if (said_idle_at_ != visitors_)
    return -1;
  const uint64_t now = MonotonicNs();
  return now < idle_again_ns_ ? static_cast<int>((idle_again_ns_ - now) / kNsPerMs + 1)
                              : kAgainMs;
}

void DeskDoor::Serve(Host& host) {
  is_all_sent_ = link_.SendRest();
  TellRecordings();
  Receive(host);
  AdmitSome(host);
}

// Without a front desk nobody comes any more, and what was recorded is to be kept.
void DeskDoor::Receive(Host& host) {
  for (int i = 0; i < kMessagesOfDesk && !is_closed_; ++i) {
    Result<std::optional<LinkMessage>> message = link_.Receive();
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

// The answer comes in among all else that is served meanwhile.
Result<GateEnds> DeskDoor::Watch(const std::function<void()>& between) {
  const uint64_t deadline_ns = MonotonicNs() + kAnswerNs;
  is_watching_ = true;
  bool is_asked = false;
  while (!watcher_ && !is_closed_ && !may_leave_ && MonotonicNs() < deadline_ns) {
    is_asked = is_asked || link_.Send({.type = LinkType::kWatch});
    pollfd readable{.fd = link_.fd(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, kAgainMs);
    between();
  }
  is_watching_ = false;
  if (!watcher_)
    return Status(
        StatusCode::kUnavailable,
        "cannot watch for new processes: the service does not answer; try again");
  LinkMessage answer = std::move(*std::exchange(watcher_, std::nullopt));
  if (answer.fds.size() != 2)
    return Status(StatusCode::kUnavailable, answer.text);
  return GateEnds{.socket = std::move(answer.fds[0]), .pipe = std::move(answer.fds[1])};
}

void DeskDoor::Handle(LinkMessage message, Host& host) {
  switch (message.type) {
    case LinkType::kVisitor: {
      ++visitors_;
      Result<Visitor> visitor = TakeVisitor(std::move(message));
      if (!visitor.ok())  // it has ended
        return Say({.type = LinkType::kAnswered, .number = visitors_});
      others_ = visitor.value().others;
      visitor.value().number = visitors_;
      waiting_.Add(std::move(visitor).value());
      return;
    }
    case LinkType::kTaken:
      return host.NoteTaken(static_cast<pid_t>(message.number));
    case LinkType::kMissed:
      return host.NoteMissed(static_cast<pid_t>(message.number));
    case LinkType::kDump:
      return host.DumpAll(message.text);
    case LinkType::kKnown:
      unanswered_ -= unanswered_ > 0 ? 1 : 0;
      return;
    case LinkType::kWatcher:
      if (is_watching_)  // or it gives its place at the gate back
        watcher_ = std::move(message);
      return;
    case LinkType::kLeave:
      may_leave_ = visitors_ == said_idle_at_;
      return;
    default:
      return;
  }
}

void DeskDoor::AdmitSome(Host& host) {
  const uint64_t end_ns = MonotonicNs() + kAdmitNs;
  while (!waiting_.empty() && MonotonicNs() < end_ns) {
    Visitor visitor = waiting_.Take();
    if (visitor.is_command) {
      host.AdmitCommand(std::move(visitor));
      continue;
    }
    const Reply reply = host.AdmitProgram(visitor);
    visitor.connection.Release();  // the front desk has it, too, and is the last one
    Say({.type = TypeOf(reply), .number = visitor.number});
  }
  waiting_.ForEach(TellToWait);
}

// A front desk that reads nothing is as good as gone.
void DeskDoor::Say(LinkMessage message) {
  if (!link_.Say(std::move(message)))
    link_ = Link(ScopedFd());
  is_all_sent_ = link_.SendRest();
}

void DeskDoor::LeaveToParent() {
  link_ = Link(ScopedFd());
  is_closed_ = true;
  waiting_.ForEach([](Visitor& visitor) { visitor.connection.Release(); });
  waiting_.clear();
  watcher_.reset();
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
  const uint64_t now = MonotonicNs();
  if (said_idle_at_ == visitors_ && now < idle_again_ns_)
    return;
  if (!link_.Send({.type = LinkType::kIdle, .number = visitors_}))
    return;
  said_idle_at_ = visitors_;
  idle_again_ns_ = now + kIdleAgainNs;
}

}  // namespace heapprofd
