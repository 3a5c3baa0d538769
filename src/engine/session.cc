#include "engine/session.h"

#include <poll.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace heapprofd {

Session::Session(const SessionConfig& config)
    : context_(config,
               [this](const std::shared_ptr<AttachedProcess>& attached) {
                 attached_.TakeHooksOut(attached);
               }),
      attached_(&context_),
      starts_(&context_, &attached_),
      families_(&context_, &attached_, &starts_),
      hook_watch_(&context_),
      newcomers_(&context_, &attached_),
      missed_(&context_.programs()) {}

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
  if (context_.config().follow_children)
    return socket_->path();
  return std::to_string(pid) + "," + socket_->path();
}

void Session::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = std::min(targets().Drain(MonotonicNs() + FairTurn::kTurnNs), max_wait_ms);
  // Whoever waits for a program's end does not wait for a look at rings that are empty.
  const size_t count = targets().size();
  targets().ReleaseEnded();
  if (targets().size() < count)
    wait_ms = 0;
  std::vector<pollfd> fds;
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = starts_.fd(), .events = POLLIN, .revents = 0});
  targets().AddTo(&fds);
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
    targets().ReapExited();
  }
}

int Session::Serve(uint64_t turn_end_ns) {
  starts_.Adopt();
  targets().ReapExited();
  const int wait_ms = targets().Drain(turn_end_ns);
  targets().ReleaseEnded();
  if (!is_stopped_) {
    families_.Follow();
    hook_watch_.Look();
  }
  return wait_ms;
}

void Session::StopAtGuardrail() {
  for (const std::unique_ptr<Target>& target : targets().all())
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
  targets().ReapExited();
  targets().StopAll(context_.between());
}

}  // namespace heapprofd
