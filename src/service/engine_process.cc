#include "service/engine_process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/print.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxWaiting = 4096;
constexpr size_t kMaxWaitingOfUser = 256;
constexpr size_t kMaxWaitingOfRoot = 2048;  // nobody else's crowd keeps root's out
constexpr size_t kMaxUnanswered = 256;      // programs that the engine has
constexpr size_t kMaxMissed = 4096;         // that it is still to be told of
constexpr size_t kMaxMissedOfOthers = 256;  // than its user
constexpr uint64_t kPatienceNs = 4'000'000'000;
constexpr int kNoRoomMs = 5;           // until the link is tried again
constexpr int kLookAtWaitingMs = 500;  // until who waits for too long is sent away
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
    return Status(
        StatusCode::kUnavailable,
        std::string("cannot start a process for the recordings of this user: ") +
            strerror(errno) + "; try again when others have ended");
  return std::unique_ptr<EngineProcess>(
      new EngineProcess(rights, std::move(links.first), pid));
}

EngineProcess::~EngineProcess() = default;

bool EngineProcess::HasRoomFor(uid_t user) const {
  return waiting_.size() < kMaxWaiting &&
         waiting_.size_of(user) < (user == 0 ? kMaxWaitingOfRoot : kMaxWaitingOfUser);
}

// Who asks again and again is told of once.
void EngineProcess::TellMissed(pid_t pid, uid_t user) {
  const size_t most = user == rights_.user ? kMaxMissed : kMaxMissedOfOthers;
  if (missed_.size() >= most || pid == last_missed_)
    return;
  last_missed_ = pid;
  missed_.push_back(pid);
  SendWaiting();
}

void EngineProcess::SendMissed() {
  while (has_room_ && !missed_.empty()) {
    has_room_ = link_.Send(
        {.type = LinkType::kMissed, .number = static_cast<uint32_t>(missed_.front())});
    if (has_room_)
      missed_.pop_front();
  }
}

void EngineProcess::Send(Visitor visitor) {
  visitor.deadline_ns = MonotonicNs() + kPatienceNs;
  waiting_.Add(std::move(visitor));
  SendWaiting();
  waiting_.ForEach(TellToWait);
}

void EngineProcess::SendWaiting() {
  if (link_.fd() < 0)
    return;  // they are for others
  has_room_ = link_.SendRest();
  SendMissed();
  while (has_room_ && !waiting_.empty() && unanswered_programs_.size() < kMaxUnanswered) {
    has_room_ = SendVisitor(link_, waiting_.next());
    if (!has_room_)
      return;
    Visitor visitor = waiting_.Take();
    ++sent_;
    if (visitor.is_command)
      visitor.connection.Release();  // the engine has it
    else
      unanswered_programs_.emplace(sent_, std::move(visitor));
  }
}

void EngineProcess::Say(LinkMessage message) {
  if (link_.Say(std::move(message)))
    return;
  Print(stderr,
        "heapprofd: the engine of user %u reads nothing: it is ended with its "
        "recordings\n",
        static_cast<unsigned>(rights_.user));
  Kill();
}

std::deque<Visitor> EngineProcess::Serve() {
  SendWaiting();
  const uint64_t now = MonotonicNs();
  // Not in the order of their numbers: users take turns.
  std::erase_if(unanswered_programs_, [now](auto& numbered) {
    const bool is_overdue = numbered.second.deadline_ns <= now;
    if (is_overdue)
      Decline(numbered.second);
    return is_overdue;
  });
  constexpr uint64_t kAllAreOverdue = UINT64_MAX;
  return waiting_.TakeOverdue(link_.fd() >= 0 ? now : kAllAreOverdue);
}

std::optional<Visitor> EngineProcess::TakeBack(uint64_t number) {
  const auto found = unanswered_programs_.find(number);
  if (found == unanswered_programs_.end())
    return std::nullopt;
  std::optional<Visitor> visitor = std::move(found->second);
  unanswered_programs_.erase(found);
  return visitor;
}

int EngineProcess::MillisecondsToNext() const {
  if (link_.fd() >= 0 && (!has_room_ || unanswered > 0))
    return kNoRoomMs;
  return is_full() || !unanswered_programs_.empty() ? kLookAtWaitingMs : -1;
}

bool EngineProcess::HasEnded() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) != 0)
    pid_ = 0;
  return pid_ == 0;
}

void EngineProcess::Kill() {
  recordings = 0;
  is_leaving = true;
  unanswered = 0;
  unanswered_programs_.clear();
  link_ = Link(ScopedFd());
  if (pid_ != 0)
    kill(pid_, SIGKILL);
}

}  // namespace heapprofd
