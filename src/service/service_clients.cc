// The service's doors: who may come in, and to whom the programs that report belong.
// Everybody at the socket may be hostile; whoever holds up, only holds up his own user.
#include <sys/socket.h>

#include <algorithm>

#include "engine/process_info.h"
#include "engine/target_rules.h"
#include "engine/tsc_clock.h"
#include "service/service.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 4'000'000'000;  // until a client has said who it is
constexpr size_t kClientsPerTurn = 16;
constexpr size_t kMaxPending = 16'384;
constexpr size_t kMaxConnections = 1024;
constexpr size_t kUserShare = 4;  // one user but root gets at most 1/4 of a limit

bool MayProfile(uid_t owner, uid_t user) {
  return owner == 0 || owner == user;
}

// Whether one more of `user` fits in among `items`.
template <typename Items, typename UserOf>
bool HasRoom(const Items& items, size_t limit, uid_t user, UserOf user_of) {
  const auto same = std::count_if(items.begin(), items.end(), [&](const auto& item) {
    return user_of(item) == user;
  });
  return items.size() < limit &&
         (user == geteuid() || static_cast<size_t>(same) < limit / kUserShare);
}

void SendDecline(int fd) {
  const Welcome decline{.magic = kHandshakeMagic,
                        .version = kWireVersion,
                        .status = WelcomeStatus::kDecline,
                        .ring_size = 0,
                        .seed = 0};
  send(fd, &decline, sizeof(decline), MSG_NOSIGNAL | MSG_DONTWAIT);
}

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

Service::Service(std::unique_ptr<RuntimeDirectory> directory, ServiceHooks hooks)
    : directory_(std::move(directory)),
      hooks_(std::move(hooks)),
      pending_({.all = kMaxPending,
                .of_user = kMaxPending / kUserShare,
                .patience_ns = kPatienceNs,
                .per_turn = kClientsPerTurn}) {}

void Service::ServePending() {
  if (listener_.valid())
    pending_.Accept(listener_.get());
  is_behind_ |= pending_.Serve([this](PendingClients::Client& client, uint64_t magic) {
    Identify(client, magic);
  });
}

void Service::Identify(PendingClients::Client& client, uint64_t magic) {
  if (magic == kHandshakeMagic) {
    ServeClient(client.fd.get(), client.peer.pid, client.peer.uid);
  } else if (magic == kControlMagic &&
             HasRoom(connections_, kMaxConnections, client.peer.uid,
                     [](const auto& connection) { return connection->user; })) {
    connections_.push_back(std::make_unique<Connection>(
        Connection{.serial = next_serial_++,
                   .channel = ControlChannel(std::move(client.fd)),
                   .user = client.peer.uid,
                   .group = client.peer.gid}));
  }
}

// The socket does not block, so the few bytes of a Welcome go out at once or never.
void Service::ServeClient(int fd, pid_t pid, uid_t user) {
  Hello hello{};
  if (recv(fd, &hello, sizeof(hello), MSG_DONTWAIT) !=
          static_cast<ssize_t>(sizeof(hello)) ||
      hello.version != kWireVersion)
    return SendDecline(fd);
  if (AnySession([pid](const Session& session) { return session.SeesAllOf(pid); }))
    return SendDecline(fd);
  EndTargetsOf(pid);
  Session* session = SessionFor(DescribeProcess(pid), user, hello.origin);
  if (session == nullptr ||
      !session->Adopt(pid, fd, hello.origin != ClientOrigin::kDormant).ok())
    return SendDecline(fd);
}

// A process that says Hello again has become another program.
void Service::EndTargetsOf(pid_t pid) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
      session->EndTarget(pid);
  }
}

Session* Service::SessionFor(const ProcessDescription& process,
                             uid_t user,
                             ClientOrigin origin) {
  Session* first = nullptr;
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (!MayProfile(hosted->owner, user))
      continue;
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (!Wants(*session, process, origin))
        continue;
      if (first == nullptr)
        first = session.get();
      else
        session->NoteRejected(process);
    }
  }
  return first;
}

// Processes that the new session wants and earlier ones have already.
void Service::NoteConflicts(Session& session, uid_t owner) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const Target* target : hosted->recording->targets()) {
      const ProcessDescription& process = target->profile().process;
      if (target->is_recording() && MayProfile(owner, process.uid) &&
          Wants(session, process, ClientOrigin::kDormant))
        session.NoteRejected(process);
    }
  }
}

}  // namespace heapprofd
