// Who comes in through a service's door, and to whom the programs that report belong.
#include <sys/socket.h>

#include <algorithm>

#include "base/clock.h"
#include "engine/process_info.h"
#include "engine/running_processes.h"
#include "engine/target_rules.h"
#include "service/service.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

// More than recordings, since a command may only want a dump.
constexpr size_t kMaxConnections = 128;
constexpr size_t kMaxConnectionsOfRoot = 512;

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

}  // namespace

void Service::AdmitCommand(Visitor visitor) {
  if (visitor.rights.user != geteuid() && visitor.rights.user != 0)
    return;
  const size_t limit = geteuid() == 0 ? kMaxConnectionsOfRoot : kMaxConnections;
  if (connections_.size() >= limit)
    return Refuse(visitor, "cannot serve one more command: " + std::to_string(limit) +
                               " of this user are connected already; stop one");
  connections_.push_back(std::make_unique<Connection>(
      Connection{.serial = next_serial_++,
                 .channel = ControlChannel(visitor.connection.Release()),
                 .deadline_ns = MonotonicNs() + command_patience_ns_}));
}

// The socket does not block, so the few bytes of a Welcome go out at once or never. The
// Hello is left in it for whoever is asked next.
Reply Service::AdmitProgram(Visitor& visitor) {
  Hello hello{};
  const pid_t pid = visitor.pid;
  if (recv(visitor.connection.get(), &hello, sizeof(hello), MSG_PEEK | MSG_DONTWAIT) !=
          static_cast<ssize_t>(sizeof(hello)) ||
      hello.version != kWireVersion ||
      !HasRightsOf(pid, visitor.rights.user, visitor.rights.group) ||
      AnySession([pid](const Session& session) { return session.IsFullySeen(pid); })) {
    Decline(visitor);
    return Reply::kSentAway;
  }
  EndTargetsOf(pid);
  Session* session = SessionFor(DescribeProcess(pid), hello.origin);
  if (session == nullptr)
    return Reply::kUnwanted;
  recv(visitor.connection.get(), &hello, sizeof(hello), MSG_DONTWAIT);
  const Status status = session->newcomers().Adopt(
      {.pid = pid,
       .user = visitor.rights.user,
       .group = visitor.rights.group,
       .connection = visitor.connection.get(),
       .process = std::move(visitor.process),
       .from_startup = hello.origin != ClientOrigin::kDormant});
  if (!status.ok())
    Decline(visitor);
  return Reply::kTaken;  // it has become another program in any case
}

void Service::NoteTaken(pid_t pid) {
  EndTargetsOf(pid);
  const ProcessDescription process = DescribeProcess(pid);
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (Wants(*session, process, ClientOrigin::kStartup))
        session->missed().NoteTaken(process);
    }
  }
}

// A process that says Hello again has become another program.
void Service::EndTargetsOf(pid_t pid) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
      session->live().NoteExec(pid);
  }
}

Session* Service::SessionFor(const ProcessDescription& process, ClientOrigin origin) {
  Session* first = nullptr;
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (!Wants(*session, process, origin))
        continue;
      if (first == nullptr)
        first = session.get();
      else
        session->missed().NoteTaken(process);
    }
  }
  return first;
}

// Processes that the new session wants and earlier ones have already.
void Service::NoteConflicts(Session& session) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const Target* target : hosted->recording->targets()) {
      const ProcessDescription& process = target->profile().process;
      if (target->is_recording() && Wants(session, process, ClientOrigin::kDormant))
        session.missed().NoteTaken(process);
    }
  }
}

}  // namespace heapprofd
