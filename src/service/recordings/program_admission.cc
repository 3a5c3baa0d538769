#include "service/recordings/program_admission.h"

#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/process_info.h"
#include "engine/running_processes.h"
#include "engine/target_rules.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

bool Wants(const Session& session, const ProcessDescription& process, ClientOrigin how) {
  const TargetRules& rules = session.config().targets;
  if (session.is_stopped() || !IsNamedBy(rules, process))
    return false;
  if (how == ClientOrigin::kForkChild && !session.config().follow_children)
    return false;
  if (how != ClientOrigin::kDormant)
    return !rules.no_startup;
  return !rules.no_running && (rules.min_anonymous_kib == 0 ||
                               AnonymousKib(process.pid) >= rules.min_anonymous_kib);
}

// The process is attached to for malloc's heap alone: what a library of its own says is
// not wanted.
bool IsFullySeen(const Session& session, pid_t pid) {
  if (!session.config().heaps.IsMallocAlone())
    return false;
  const LiveTarget* live = session.targets().FindReporting(pid);
  return live != nullptr && (live->is_starting || (live->attached != nullptr &&
                                                   !live->attached->HasBecomeAnother()));
}

// A process that says Hello again has become another program.
void EndTargetsOf(const Sessions& sessions, pid_t pid) {
  for (Session* session : sessions)
    session->targets().NoteExec(pid);
}

Session* SessionFor(const Sessions& sessions,
                    const ProcessDescription& process,
                    ClientOrigin origin) {
  Session* first = nullptr;
  for (Session* session : sessions) {
    if (!Wants(*session, process, origin))
      continue;
    if (first == nullptr)
      first = session;
    else
      session->missed().NoteTaken(process);
  }
  return first;
}

}  // namespace

void AdmitProgramTo(const Sessions& sessions, Visitor visitor) {
  Hello hello{};
  const pid_t pid = visitor.pid;
  if (recv(visitor.connection.get(), &hello, sizeof(hello), MSG_DONTWAIT) !=
          static_cast<ssize_t>(sizeof(hello)) ||
      hello.version != kWireVersion || !HasRightsOf(pid, visitor.user, visitor.group) ||
      std::ranges::any_of(
          sessions, [pid](const Session* session) { return IsFullySeen(*session, pid); }))
    return Decline(visitor);
  EndTargetsOf(sessions, pid);
  Session* session = SessionFor(sessions, DescribeProcess(pid), hello.origin);
  if (session == nullptr ||
      !session->newcomers()
           .Adopt({.pid = pid,
                   .user = visitor.user,
                   .group = visitor.group,
                   .connection = visitor.connection.get(),
                   .process = std::move(visitor.process),
                   .from_startup = hello.origin != ClientOrigin::kDormant})
           .ok())
    Decline(visitor);
}

void NoteMissedBy(const Sessions& sessions, pid_t pid) {
  const ProcessDescription process = DescribeProcess(pid);
  for (Session* session : sessions) {
    if (Wants(*session, process, ClientOrigin::kStartup))
      session->newcomers().NoteLate(process);
  }
}

void NoteConflicts(const Sessions& earlier, Session& newest) {
  for (const Session* session : earlier) {
    for (const std::unique_ptr<Target>& target : session->targets().all()) {
      const ProcessDescription& process = target->profile().process;
      if (target->is_recording() && Wants(newest, process, ClientOrigin::kDormant))
        newest.missed().NoteTaken(process);
    }
  }
}

bool IsRecordedBy(const Sessions& sessions, pid_t pid) {
  return std::ranges::any_of(sessions, [pid](const Session* session) {
    return session->targets().IsProfiling(pid);
  });
}

}  // namespace heapprofd
