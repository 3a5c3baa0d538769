#include "service/finishers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/child_process.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLimitNs = 600'000'000'000;  // with all names
constexpr uint64_t kGraceNs = 5'000'000'000;    // without
constexpr uint64_t kKilledNs = 1'000'000'000;   // unless it hangs in the kernel
constexpr uint64_t kLookAgainNs = 5'000'000;
constexpr int kLookAtSlowMs = 500;  // between two looks at who takes too long

// Only this one: a wait for any child takes the stops of threads that we trace, too.
bool HasEnded(pid_t pid) {
  return waitpid(pid, nullptr, WNOHANG) != 0;
}

}  // namespace

Status Finishers::Begin(const std::function<void()>& work) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    EndWithParent(parent, SIGKILL);  // nobody else ends those that take too long
    setpgid(0, 0);
    work();
    _exit(0);
  }
  if (pid < 0)
    return Status::FromErrno("cannot finish the recording", errno);
  running_.push_back({.pid = pid, .started_ns = MonotonicNs()});
  return {};
}

int Finishers::MillisecondsToNext() const {
  return running_.empty() ? -1 : kLookAtSlowMs;
}

// With its workers.
void Finishers::EndAfter(Finisher& finisher, uint64_t limit_ns) {
  const uint64_t now = MonotonicNs();
  if (now >= limit_ns && !finisher.is_told) {
    finisher.is_told = true;
    kill(finisher.pid, SIGTERM);
  }
  if (now >= limit_ns + kGraceNs)
    kill(-finisher.pid, SIGKILL);
}

void Finishers::Reap() {
  std::erase_if(running_,
                [](const Finisher& finisher) { return HasEnded(finisher.pid); });
  for (Finisher& finisher : running_)
    EndAfter(finisher, finisher.started_ns + kLimitNs);
}

void Finishers::AwaitAll(uint64_t deadline_ns) {
  while (!running_.empty() && MonotonicNs() < deadline_ns + kGraceNs + kKilledNs) {
    Reap();
    for (Finisher& finisher : running_)
      EndAfter(finisher, deadline_ns);
    SleepNs(kLookAgainNs);
  }
}

}  // namespace heapprofd
