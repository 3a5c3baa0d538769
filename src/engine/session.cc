#include "engine/session.h"

#include <poll.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace heapprofd {

Session::Session(const SessionConfig& config)
    : config_(config),
      live_(
          &clock_,
          &programs_,
          [this](std::string problem) { problems_.Note(std::move(problem)); },
          [this](const std::shared_ptr<AttachedProcess>& attached) {
            attached_.TakeHooksOut(attached);
          }),
      context_{.config = &config_,
               .clock = &clock_,
               .modules = &modules_,
               .programs = &programs_,
               .targets = &live_,
               .problems = &problems_,
               .serve_meanwhile = [this] { ServeMeanwhile(); }},
      attached_(&context_),
      starts_(&context_, &attached_),
      families_(&context_, &attached_, &starts_),
      newcomers_(&context_, &attached_),
      missed_(&programs_) {
  clock_.Update();
}

Result<std::unique_ptr<Session>> Session::Create(const SessionConfig& config) {
  std::unique_ptr<Session> session(new Session(config));
  HPD_TRY_ASSIGN(
      session->socket_,
      SessionSocket::Create(
          {.hello =
               [session = session.get()](const Hello& hello,
                                         const PendingClients::Client& client) {
                 session->newcomers_.OnHello(hello, client);
               },
           .exec_notice =
               [session = session.get()](const ExecNotice& notice, pid_t sender) {
                 session->newcomers_.OnExecNotice(notice, sender);
               }}));
  return session;
}

std::unique_ptr<Session> Session::CreateWithoutSocket(const SessionConfig& config) {
  return std::unique_ptr<Session>(new Session(config));
}

std::string Session::EnvironmentFor(pid_t pid) const {
  if (config_.follow_children)
    return socket_->path();
  return std::to_string(pid) + "," + socket_->path();
}

void Session::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = std::min(live_.Drain(MonotonicNs() + FairTurn::kTurnNs), max_wait_ms);
  // Whoever waits for a program's end does not wait for a look at rings that are empty.
  const size_t count = live_.size();
  live_.ReleaseEnded();
  if (live_.size() < count)
    wait_ms = 0;
  std::vector<pollfd> fds;
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = starts_.fd(), .events = POLLIN, .revents = 0});
  live_.AddTo(&fds);
  if (socket_ != nullptr) {
    wait_ms = std::min(wait_ms, socket_->MillisecondsToNext());
    socket_->AddTo(&fds);
  }
  const bool has_news = poll(fds.data(), fds.size(), wait_ms) != 0;
  // Asking a socket where nobody waits costs as much as looking at a ring.
  if (socket_ != nullptr && (has_news || socket_->MillisecondsToNext() == 0))
    socket_->Serve();
  if (has_news) {
    starts_.Adopt();
    live_.ReapExited();
  }
}

Status Session::CatchStarts(ExecWatcher::Filter filter,
                            const ExecWatcher::MakeGate& make_gate) {
  return starts_.Begin(std::move(filter), make_gate, [this] {
    if (between_)
      between_();
  });
}

int Session::Serve(uint64_t turn_end_ns) {
  starts_.Adopt();
  live_.ReapExited();
  const int wait_ms = live_.Drain(turn_end_ns);
  live_.ReleaseEnded();
  if (!is_stopped_)
    families_.Follow();
  return wait_ms;
}

void Session::ServeMeanwhile() {
  live_.Drain(MonotonicNs() + FairTurn::kTurnNs);
  if (between_)
    between_();
}

std::vector<std::string> Session::attach_problems() const {
  return problems_.All([this](pid_t pid) {
    return std::ranges::any_of(
        targets(), [pid](const auto& target) { return target->pid() == pid; });
  });
}

void Session::StopAtGuardrail() {
  for (const std::unique_ptr<Target>& target : targets())
    target->NoteGuardrail();
  Stop();
}

void Session::Stop() {
  is_stopped_ = true;
  if (socket_ != nullptr)
    socket_->Close();
  starts_.Adopt();
  starts_.End();
  families_.Forget();
  live_.ReapExited();
  live_.StopAll(between_);
}

}  // namespace heapprofd
