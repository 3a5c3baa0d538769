// Programs that have our library and report by themselves: what they say of
// themselves and of the programs that they start, and making targets of them.
//
// One thread: the session's. Everything that they say is their word; who they
// are, the kernel's.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/pending_clients.h"
#include "engine/session/attached_targets.h"
#include "engine/session/session_context.h"
#include "engine/unrecorded.h"
#include "wire/handshake.h"

namespace heapprofd {

// A process that waits for its Welcome.
struct Newcomer {
  pid_t pid;
  uid_t user;  // this and the group: when it connected
  gid_t group;
  int connection;
  ScopedFd process;   // pidfd
  bool from_startup;  // it has not run yet
};

class Newcomers {
 public:
  // Both outlive it. Nobody is taken in while it is `attached` to.
  Newcomers(SessionContext* context, const AttachedTargets* attached)
      : context_(context), attached_(attached) {}

  // Takes in whoever is wanted; the others get a Welcome that declines.
  void OnHello(const Hello& hello, const PendingClients::Client& client);

  void OnExecNotice(const ExecNotice& notice, pid_t sender);

  // The process `pid` is about to become `program`: known as unrecorded unless
  // it reports.
  void Expect(pid_t pid, const std::string& program);

  // Makes it a target.
  Status Adopt(Newcomer newcomer);

  // One that is wanted was not answered in time.
  void NoteLate(const ProcessDescription& process);

 private:
  const SessionConfig& config() const { return context_->config(); }

  ProgramWatch& programs() { return context_->programs(); }

  bool Wants(pid_t pid) const;
  void Decline(pid_t pid, const std::string& why);
  Status TakeIn(Newcomer newcomer);

  SessionContext* context_;
  const AttachedTargets* attached_;
  pid_t program_ = 0;  // that was started for this session; 0: none
};

}  // namespace heapprofd
