#include "service/front_desk.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr int kMessagesOfEngine = 64;                // in one turn
constexpr uint64_t kEngineKilledNs = 1'000'000'000;  // unless it hangs in the kernel
constexpr uint64_t kEnginePollNs = 5'000'000;

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
  return engines_.is_empty() && (reception_ == nullptr || reception_->is_empty());
}

int FrontDesk::MillisecondsToNext() const {
  int wait_ms = reception_ != nullptr ? reception_->MillisecondsToNext() : -1;
  for (const int limit_ms :
       {engines_.MillisecondsToNext(), wakes_.MillisecondsToNext(MonotonicNs()),
        exec_gate_.MillisecondsToNext()}) {
    if (limit_ms >= 0)
      wait_ms = wait_ms < 0 ? limit_ms : std::min(wait_ms, limit_ms);
  }
  return wait_ms;
}

void FrontDesk::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = MillisecondsToNext();
  if (wait_ms < 0 || (max_wait_ms >= 0 && max_wait_ms < wait_ms))
    wait_ms = max_wait_ms;
  std::vector<pollfd> fds;
  for (const std::unique_ptr<EngineProcess>& engine : engines_.all())
    fds.push_back({.fd = engine->link().fd(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = exec_gate_.fd(), .events = POLLIN, .revents = 0});
  if (reception_ != nullptr)
    reception_->AddTo(&fds);
  poll(fds.data(), fds.size(), wait_ms);
  for (size_t i = 0; i < engines_.all().size(); ++i) {
    EngineProcess& engine = *engines_.all()[i];
    if (fds[i].revents != 0)
      Hear(engine);
    Serve(engine);
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
  if (visitor.rights.user == 0 && !HasRootsRights(visitor))
    return Refuse(
        visitor,
        "cannot serve the command: it is one of user 0 without root's rights "
        "where the service runs (CAP_SYS_PTRACE, in its user and PID name "
        "space); run it there, or set HEAPPROFD_DIRECTORY to an empty directory "
        "to record with the rights that it has");
  const Result<EngineProcess*> found = engines_.Of(visitor);
  if (!found.ok())
    return Refuse(visitor, found.status().message());
  EngineProcess& engine = *found.value();
  if (!engine.HasRoomFor(visitor.rights.user))
    return Refuse(visitor,
                  "cannot serve the command: too many programs and commands of this user "
                  "wait already; try again");
  visitor.others = engines_.CountRecordings() - engine.recordings;
  engine.Send(std::move(visitor));
}

// One that cannot follow is passed by when another one may want the program: root's must
// not keep a user's programs from his own.
void FrontDesk::Offer(Visitor visitor, const EngineProcess* after) {
  EngineProcess* busy = nullptr;
  for (EngineProcess* engine : engines_.ThatMayWant(visitor, after)) {
    if (!engine->HasRoomFor(visitor.rights.user))
      engine->TellMissed(visitor.pid, visitor.rights.user);
    else if (!engine->is_full())
      return engine->Send(std::move(visitor));
    else if (busy == nullptr)
      busy = engine;
  }
  if (busy != nullptr)
    busy->Send(std::move(visitor));
  else
    Decline(visitor);
}

// What it cannot take in time is for others.
void FrontDesk::Serve(EngineProcess& engine) {
  for (Visitor& visitor : engine.Serve()) {
    if (visitor.is_command) {
      Refuse(visitor,
             "cannot serve the command: this user's engine does not answer; try again");
      continue;
    }
    engine.TellMissed(visitor.pid, visitor.rights.user);
    Offer(std::move(visitor), &engine);
  }
}

void FrontDesk::Hear(EngineProcess& engine) {
  for (int i = 0; i < kMessagesOfEngine && HearOne(engine); ++i) {
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
  Handle(engine, *message.value());
  return true;
}

// What an engine says may be a lie: it can only be believed as far as its user may go.
void FrontDesk::Handle(EngineProcess& engine, const LinkMessage& message) {
  const bool is_root = engine.rights().user == 0;
  switch (message.type) {
    case LinkType::kPassOn:
      if (std::optional<Visitor> visitor = engine.TakeBack(message.number))
        Offer(std::move(*visitor), &engine);
      return;
    case LinkType::kTakenHere:
    case LinkType::kAnswered: {
      const std::optional<Visitor> visitor = engine.TakeBack(message.number);
      if (visitor && is_root && message.type == LinkType::kTakenHere)
        TellTaken(*visitor);
      return;
    }
    case LinkType::kRecordings:
      engine.recordings = std::min<uint64_t>(message.number, UINT16_MAX);
      if (!message.text.empty())
        wakes_.Want(engine.rights().user);
      TellRecordings();
      if (++engine.unanswered > kMaxUnsent)
        engine.Kill();  // it asks and does not listen
      return;
    case LinkType::kDumpOthers:
      for (const std::unique_ptr<EngineProcess>& other : engines_.all()) {
        if (is_root && other.get() != &engine)
          other->Say({.type = LinkType::kDump, .text = message.text});
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
  for (auto& [ticket, ends] : exec_gate_.Turn()) {
    for (const std::unique_ptr<EngineProcess>& engine : engines_.all()) {
      if (engine->watch != ticket)
        continue;
      engine->watch = 0;
      LinkMessage answer{.type = LinkType::kWatcher};
      if (ends.ok()) {
        answer.fds.push_back(std::move(ends.value().socket));
        answer.fds.push_back(std::move(ends.value().pipe));
      } else {
        answer.text = ends.status().message();
      }
      engine->Say(std::move(answer));
    }
  }
}

void FrontDesk::TellTaken(const Visitor& program) {
  for (const std::unique_ptr<EngineProcess>& engine : engines_.all()) {
    const uid_t user = engine->rights().user;
    if (user != 0 && user == program.rights.user)
      engine->Say(
          {.type = LinkType::kTaken, .number = static_cast<uint32_t>(program.pid)});
  }
}

void FrontDesk::TellRecordings() {
  directory_->SetRecordings(engines_.CountRecordings());
}

void FrontDesk::WakeAndAnswer() {
  if (wakes_.TakeDue(MonotonicNs()))
    directory_->Wake();
  for (const std::unique_ptr<EngineProcess>& engine : engines_.all()) {
    for (int i = 0; i < kMessagesOfEngine && engine->unanswered > 0; ++i) {
      if (wakes_.IsWanted(engine->rights().user) ||
          !engine->link().Send({.type = LinkType::kKnown}))
        break;
      --engine->unanswered;
    }
  }
}

void FrontDesk::Dump(const std::string& label) {
  for (const std::unique_ptr<EngineProcess>& engine : engines_.all())
    engine->Say({.type = LinkType::kDump, .text = label});
}

void FrontDesk::ReapEngines() {
  engines_.Reap();
  TellRecordings();
}

void FrontDesk::StopAll() {
  reception_.reset();
  for (const std::unique_ptr<EngineProcess>& engine : engines_.all())
    shutdown(engine->link().fd(), SHUT_WR);  // unlike a message this always arrives
  directory_->GiveUpLock();
}

void FrontDesk::AwaitEngines(uint64_t deadline_ns) {
  while (!engines_.is_empty() && MonotonicNs() < deadline_ns + kEngineKilledNs) {
    for (const std::unique_ptr<EngineProcess>& engine : engines_.all()) {
      if (MonotonicNs() >= deadline_ns)
        engine->Kill();
      else
        Hear(*engine);
    }
    engines_.Reap();
    SleepNs(kEnginePollNs);
  }
}

}  // namespace heapprofd
