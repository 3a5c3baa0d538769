#include "engine/session/newcomers.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files/guarded_read.h"
#include "base/files/passed_fds.h"
#include "base/files/proc_files.h"
#include "base/random_seed.h"
#include "engine/bare_welcome.h"
#include "engine/obstacle.h"
#include "engine/process_info.h"
#include "engine/running_processes.h"
#include "engine/target_rules.h"

namespace heapprofd {
namespace {

bool SendWelcome(int connection, const Welcome& welcome, const std::vector<int>& fds) {
  const std::string_view bytes(reinterpret_cast<const char*>(&welcome), sizeof(welcome));
  return SendWithFds(connection, bytes, fds) == bytes.size();
}

ScopedFd OpenProcess(pid_t pid) {
  return ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// The other end is closed: its process is gone, or has waited long enough.
bool HasLeft(int connection) {
  char byte = 0;
  const ssize_t got = recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

std::string NameOf(pid_t pid) {
  return DescribeProcess(pid).cmdline[0];
}

UnrecordedReason ReasonOf(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::k32Bit:
      return UnrecordedReason::k32Bit;
    case Obstacle::kOtherMachine:
      return UnrecordedReason::kOtherMachine;
    case Obstacle::kStatic:
      return UnrecordedReason::kStatic;
    case Obstacle::kPrivileged:
      return UnrecordedReason::kPrivileged;
  }
  return UnrecordedReason::kNotLoaded;
}

}  // namespace

void Newcomers::OnHello(const Hello& hello, const PendingClients::Client& client) {
  const pid_t pid = client.peer.pid;
  if (hello.version != kWireVersion)
    Decline(pid, "the preload library is of another version");
  else if (!Wants(pid))
    programs().Recorded(pid, MonotonicNs());  // nobody misses it
  else if (Adopt({.pid = pid,
                  .user = client.peer.uid,
                  .group = client.peer.gid,
                  .connection = client.fd.get(),
                  .process = OpenProcess(pid),
                  .from_startup = true})
               .ok())
    return;
  SendBareWelcome(client.fd.get(), WelcomeStatus::kDecline);
}

void Newcomers::Decline(pid_t pid, const std::string& why) {
  programs().Missed(pid, MonotonicNs(), NameOf(pid), why, UnrecordedReason::kDeclined);
}

// A session with a program of its own records all of its processes unless some
// are named.
bool Newcomers::Wants(pid_t pid) const {
  const TargetRules& rules = config().targets;
  return (rules.names.empty() && rules.pids.empty()) ||
         IsNamedBy(rules, DescribeProcess(pid));
}

void Newcomers::OnExecNotice(const ExecNotice& notice, pid_t sender) {
  const pid_t pid =
      notice.pid == kExecOfSender ? sender : ChildNumbered(sender, notice.pid);
  if (notice.outcome == ExecOutcome::kFailed) {
    programs().Failed(pid);
    return;
  }
  if (!config().follow_children && pid != program_)
    return;  // nobody misses it
  const std::string program(notice.program,
                            strnlen(notice.program, sizeof(notice.program)));
  std::string directory = ProcPath(sender, "cwd");
  if (ReadProcessLink(sender, "cwd").text.empty())
    directory.clear();  // already over; most began where we did
  UnrecordedReason reason = ReasonOf(FindObstacle(program, directory, sender).kind);
  if (pid == 0) {  // over already, and maybe recorded unless it cannot be
    programs().Count(program, reason, reason == UnrecordedReason::kNotLoaded ? 0 : 1);
    return;
  }
  if (reason == UnrecordedReason::kNotLoaded && notice.keeps_session == 0)
    reason = UnrecordedReason::kCleanedEnvironment;
  programs().Attempt(pid, notice.time_ns, program, reason);
}

void Newcomers::Expect(pid_t pid, const std::string& program) {
  program_ = pid;
  programs().Attempt(pid, MonotonicNs(), program,
                     ReasonOf(FindObstacle(program, "").kind));
}

Status Newcomers::Adopt(Newcomer newcomer) {
  const uint64_t asked_ns = MonotonicNs();
  const pid_t pid = newcomer.pid;
  const int connection = newcomer.connection;
  context_->targets().NoteExec(pid);
  Status status =
      attached_->IsAttachingTo(pid)
          ? Status(StatusCode::kUnavailable, "it is being attached to at this moment")
          : TakeIn(std::move(newcomer));
  if (status.ok())
    programs().Recorded(pid, asked_ns);
  else if (HasLeft(connection))  // which can make anything fail
    programs().Missed(pid, asked_ns, NameOf(pid), "", UnrecordedReason::kLate);
  else
    Decline(pid, status.message());
  return status;
}

void Newcomers::NoteLate(const ProcessDescription& process) {
  programs().Missed(process.pid, MonotonicNs(), process.cmdline[0], "",
                    UnrecordedReason::kLate);
}

Status Newcomers::TakeIn(Newcomer newcomer) {
  const pid_t pid = newcomer.pid;
  HPD_TRY(context_->targets().CheckRoom(pid));
  if (HasLeft(newcomer.connection))
    return Status(StatusCode::kUnavailable, "it does not wait for an answer any more");
  const Target::Origin origin{.pid = pid,
                              .thread = pid,
                              .process = newcomer.process.get(),
                              .from_startup = newcomer.from_startup};
  HPD_TRY_ASSIGN(
      std::unique_ptr<Target> target,
      Target::Create(origin, config(), &context_->modules(), &context_->clock()));
  SharedMemory& memory = target->recorder().memory();
  // Its rights are looked at now that its mappings are open: whatever it has become
  // before is seen, and what it becomes later has other mappings.
  HPD_TRY(CheckRightsOf(pid, newcomer.user, newcomer.group));
  const Welcome welcome{.magic = kHandshakeMagic,
                        .version = kWireVersion,
                        .status = WelcomeStatus::kProfile,
                        .ring_size = memory.ring_size(),
                        .seed = RandomSeed()};
  const std::vector<int> fds = {memory.engine_fd(), memory.client_fd()};
  if (!SendWelcome(newcomer.connection, welcome, fds))
    return Status::FromErrno("cannot answer process " + std::to_string(pid), errno);
  context_->targets().Add(std::move(target), std::move(newcomer.process));
  return {};
}

}  // namespace heapprofd
