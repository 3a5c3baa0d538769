#include "service/front_desk.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxEngines = 256;
constexpr size_t kMaxEnginesOfUser = 4;        // with other groups each
constexpr int kMessagesPerTurn = 64;           // of one engine
constexpr int kFullWaitMs = 5;                 // until an engine is asked again for room
constexpr uint64_t kKilledNs = 1'000'000'000;  // unless it hangs in the kernel
constexpr uint64_t kLookAgainNs = 5'000'000;

}  // namespace

Result<std::unique_ptr<FrontDesk>> FrontDesk::Open(
    std::unique_ptr<RuntimeDirectory> directory,
    ScopedFd listener,
    EngineProcess::Main engine_main) {
  std::unique_ptr<FrontDesk> desk(
      new FrontDesk(std::move(directory), std::move(engine_main)));
  HPD_TRY_ASSIGN(desk->reception_,
                 Reception::Open(desk->directory_->socket_path(), std::move(listener)));
  // Programs that outlived an earlier service may now be wanted by nobody; those that it
  // profiled notice by themselves that it is gone.
  desk->directory_->SetRecordings(0);
  desk->directory_->Wake();
  return desk;
}

bool FrontDesk::is_idle() const {
  return engines_.empty() && (reception_ == nullptr || reception_->is_empty());
}

int FrontDesk::MillisecondsToNext() const {
  int wait_ms = reception_ != nullptr ? reception_->MillisecondsToNext() : -1;
  const auto wait_at_most = [&wait_ms](int limit_ms) {
    wait_ms = wait_ms < 0 ? limit_ms : std::min(wait_ms, limit_ms);
  };
  if (std::any_of(engines_.begin(), engines_.end(),
                  [](const auto& engine) { return engine->is_full(); }))
    wait_at_most(kFullWaitMs);
  for (const int limit_ms :
       {wakes_.MillisecondsToNext(MonotonicNs()), exec_gate_.MillisecondsToNext()}) {
    if (limit_ms >= 0)
      wait_at_most(limit_ms);
  }
  return wait_ms;
}

void FrontDesk::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = MillisecondsToNext();
  if (wait_ms < 0 || (max_wait_ms >= 0 && max_wait_ms < wait_ms))
    wait_ms = max_wait_ms;
  std::vector<pollfd> fds;
  for (const std::unique_ptr<EngineProcess>& engine : engines_)
    fds.push_back({.fd = engine->link().fd(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = exec_gate_.fd(), .events = POLLIN, .revents = 0});
  if (reception_ != nullptr)
    reception_->AddTo(&fds);
  poll(fds.data(), fds.size(), wait_ms);
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (fds[i].revents != 0)
      Hear(*engines_[i]);
    if (engines_[i]->is_full())
      engines_[i]->SendWaiting();
  }
  if (reception_ != nullptr)
    reception_->Serve([this](Visitor visitor) { Admit(std::move(visitor)); });
  AnswerWatchers();
  WakeAndAnswer();
}

void FrontDesk::Admit(Visitor visitor) {
  if (visitor.is_command)
    AdmitCommand(std::move(visitor));
  else
    Offer(std::move(visitor), nullptr);
}

void FrontDesk::AdmitCommand(Visitor visitor) {
  EngineProcess* engine = EngineOf(visitor.rights);
  if (engine != nullptr)
    engine->Send(std::move(visitor), CountRecordings() - engine->recordings);
}

// Root always finds room.
bool FrontDesk::HasRoomFor(uid_t user) const {
  const auto same =
      std::count_if(engines_.begin(), engines_.end(),
                    [user](const auto& engine) { return engine->rights().user == user; });
  return static_cast<size_t>(same) < kMaxEnginesOfUser &&
         (user == 0 || engines_.size() < kMaxEngines);
}

// Whoever finds no engine is told so by the end of his connection.
EngineProcess* FrontDesk::EngineOf(const Rights& rights) {
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    if (engine->rights() == rights && !engine->is_leaving)
      return engine.get();
  }
  if (!HasRoomFor(rights.user))
    return nullptr;
  Result<std::unique_ptr<EngineProcess>> engine =
      EngineProcess::Start(rights, engine_main_);
  if (!engine.ok())
    return nullptr;
  ++started_;
  const bool is_root = rights.user == 0;
  return engines_
      .insert(is_root ? engines_.begin() : engines_.end(), std::move(engine).value())
      ->get();
}

void FrontDesk::Offer(Visitor visitor, const EngineProcess* after) {
  bool is_behind = after == nullptr;
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    const Rights& rights = engine->rights();
    const bool may_want = rights.user == 0 || (rights.user == visitor.rights.user &&
                                               rights.group == visitor.rights.group);
    // Root's, when it cannot follow, must not keep a user's programs from his own.
    const bool is_passed_by =
        rights.user == 0 && visitor.rights.user != 0 && engine->is_full();
    if (is_behind && may_want && !is_passed_by && engine->recordings > 0 &&
        !engine->is_leaving)
      return engine->Send(std::move(visitor), 0);
    is_behind |= engine.get() == after;
  }
  Decline(visitor);
}

void FrontDesk::Hear(EngineProcess& engine) {
  for (int i = 0; i < kMessagesPerTurn && HearOne(engine); ++i) {
  }
}

bool FrontDesk::HearOne(EngineProcess& engine) {
  Result<std::optional<LinkMessage>> message = engine.link().Receive();
  if (message.ok() && !message.value())
    return false;
  if (!message.ok()) {
    engine.Kill();
    TellRecordings();
    return false;
  }
  Handle(engine, std::move(*message.value()));
  return true;
}

// What an engine says may be a lie: it can only be believed as far as its user may go.
void FrontDesk::Handle(EngineProcess& engine, LinkMessage message) {
  const bool is_root = engine.rights().user == 0;
  switch (message.type) {
    case LinkType::kPassOn: {
      Result<Visitor> visitor = TakeVisitor(std::move(message));
      if (visitor.ok() &&
          (is_root || visitor.value().rights.user == engine.rights().user))
        Offer(std::move(visitor).value(), &engine);
      return;
    }
    case LinkType::kTakenHere:
      if (is_root)
        TellTaken(message.number);
      return;
    case LinkType::kRecordings:
      engine.recordings = std::min<uint64_t>(message.number, UINT16_MAX);
      if (!message.text.empty())
        wakes_.Want(engine.rights().user);
      TellRecordings();
      ++engine.unanswered;
      return;
    case LinkType::kDumpOthers:
      for (const std::unique_ptr<EngineProcess>& other : engines_) {
        if (is_root && other.get() != &engine)
          other->link().Send({.type = LinkType::kDump, .text = message.text});
      }
      return;
    case LinkType::kWatch:
      if (engine.watch == 0)
        engine.watch = exec_gate_.Ask(engine.rights().user);
      return;
    case LinkType::kIdle:
      if (message.number == engine.sent() && !engine.is_full())
        engine.is_leaving = engine.link().Send({.type = LinkType::kLeave});
      return;
    default:
      return;
  }
}

void FrontDesk::AnswerWatchers() {
  for (const auto& [ticket, ends] : exec_gate_.Turn()) {
    for (const std::unique_ptr<EngineProcess>& engine : engines_) {
      if (engine->watch != ticket)
        continue;
      engine->watch = 0;
      if (ends.ok())
        engine->link().Send({.type = LinkType::kWatcher},
                            {ends.value().socket.get(), ends.value().pipe.get()});
      else
        engine->link().Send(
            {.type = LinkType::kWatcher, .text = ends.status().message()});
    }
  }
}

void FrontDesk::TellTaken(uint64_t process) {
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    const uid_t user = engine->rights().user;
    if (user != 0 && user == process >> 32)
      engine->link().Send({.type = LinkType::kTaken, .number = process & UINT32_MAX});
  }
}

uint64_t FrontDesk::CountRecordings() const {
  uint64_t count = 0;
  for (const std::unique_ptr<EngineProcess>& engine : engines_)
    count += engine->recordings;
  return count;
}

void FrontDesk::TellRecordings() {
  directory_->SetRecordings(CountRecordings());
}

void FrontDesk::WakeAndAnswer() {
  if (wakes_.TakeDue(MonotonicNs()))
    directory_->Wake();
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    while (!wakes_.IsWanted(engine->rights().user) && engine->unanswered > 0 &&
           engine->link().Send({.type = LinkType::kKnown}))
      --engine->unanswered;
  }
}

void FrontDesk::Dump(const std::string& label) {
  for (const std::unique_ptr<EngineProcess>& engine : engines_)
    engine->link().Send({.type = LinkType::kDump, .text = label});
}

void FrontDesk::ReapEngines() {
  std::erase_if(engines_, [](const auto& engine) { return engine->HasEnded(); });
  TellRecordings();
}

void FrontDesk::StopAll() {
  reception_.reset();
  for (const std::unique_ptr<EngineProcess>& engine : engines_)
    shutdown(engine->link().fd(), SHUT_WR);  // unlike a message this always arrives
  directory_->GiveUpLock();
}

void FrontDesk::AwaitEngines(uint64_t deadline_ns) {
  while (!engines_.empty() && MonotonicNs() < deadline_ns + kKilledNs) {
    for (const std::unique_ptr<EngineProcess>& engine : engines_) {
      if (MonotonicNs() >= deadline_ns)
        engine->Kill();
      else
        Hear(*engine);
    }
    std::erase_if(engines_, [](const auto& engine) { return engine->HasEnded(); });
    SleepNs(kLookAgainNs);
  }
}

}  // namespace heapprofd
