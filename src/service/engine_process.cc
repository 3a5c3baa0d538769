#include "service/engine_process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxWaiting = 1024;
constexpr uint64_t kPatienceNs = 4'000'000'000;
// What one user can make us spend: his recordings fail beyond that, and nobody else's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kMaxData = RLIM_INFINITY;  // a sanitizer reserves terabytes
#else
constexpr rlim_t kMaxData = rlim_t{4} << 30;  // bytes; rings are not counted
#endif
constexpr rlim_t kMaxFiles = 65'536;

void Limit(int resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0)
    return;
  limit.rlim_max = std::min(limit.rlim_max, value);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// Nothing of the front desk lives on in here. Then a user's engine has his rights, and
// may still not be looked into by him: what it says to the front desk is its own.
[[noreturn]] void Become(const Rights& rights,
                         Link link,
                         const EngineProcess::Main& main) {
  CloseAllBut(std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, link.fd()});
  setpgid(0, 0);
  if (rights.user != 0) {
    Limit(RLIMIT_DATA, kMaxData);
    Limit(RLIMIT_NOFILE, kMaxFiles);
  }
  Limit(RLIMIT_CORE, 0);
  if (!BecomeUser(rights.user, rights.group, rights.groups).ok() ||
      !MakeUndumpable().ok() || (rights.user != 0 && !ForbidNewPrivileges().ok()))
    _exit(1);
  _exit(main(std::move(link)));
}

}  // namespace

Result<std::unique_ptr<EngineProcess>> EngineProcess::Start(const Rights& rights,
                                                            const Main& main) {
  HPD_TRY_ASSIGN(auto links, Link::Pair());
  const pid_t pid = fork();
  if (pid == 0)
    Become(rights, std::move(links.second), main);
  if (pid < 0)
    return Status::FromErrno("cannot start a process for the recordings of a user",
                             errno);
  return std::unique_ptr<EngineProcess>(
      new EngineProcess(rights, std::move(links.first), pid));
}

EngineProcess::~EngineProcess() = default;

void EngineProcess::Send(Visitor visitor, uint64_t others) {
  if (waiting_.size() >= kMaxWaiting)
    return Decline(visitor);
  waiting_.push_back({.visitor = std::move(visitor),
                      .others = others,
                      .deadline_ns = MonotonicNs() + kPatienceNs});
  SendWaiting();
  if (!waiting_.empty())
    TellToWait(waiting_.back().visitor);
}

void EngineProcess::SendWaiting() {
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.front();
    if (MonotonicNs() < next.deadline_ns) {
      if (!SendVisitor(link_, next.visitor, next.others))
        return;
      ++sent_;
    }
    waiting_.pop_front();
  }
}

bool EngineProcess::HasEnded() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) != 0)
    pid_ = 0;
  return pid_ == 0;
}

void EngineProcess::Kill() {
  recordings = 0;
  is_leaving = true;
  waiting_.clear();
  link_ = Link(ScopedFd());
  if (pid_ != 0)
    kill(pid_, SIGKILL);
}

}  // namespace heapprofd
