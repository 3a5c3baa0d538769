// Processes that ran before the session, or that it has caught: puts the client
// into them, makes targets of them, and takes the hooks out at the end.
//
// One thread: the session's. What may wait for a process is done apart
// (attach/apart.h), on a thread that shares in the ownership of all that it
// uses: of the process, and of the finder of allocators.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "attach/attached_process.h"
#include "base/status.h"
#include "engine/session/session_context.h"
#include "engine/session/settled_programs.h"
#include "engine/target/target.h"

namespace heapprofd {

class AttachedTargets {
 public:
  // Outlives it.
  explicit AttachedTargets(SessionContext* context) : context_(context) {}

  // Records a process that already runs, from now on. kUnavailable, kNotFound:
  // it cannot be attached to, and why.
  Status Attach(pid_t pid);

  // The same without a second try: kTryAgain is an answer, too. `only_counting_children`:
  // kNotFound of who was not born with the hooks of one of this session.
  Status PutClientIn(pid_t pid, bool only_counting_children = false);

  // True if the process may be attached to now: a program that may be about to execute
  // another one is left alone for a moment by an engine without CAP_SYS_PTRACE
  // (settled_programs.h). The moment begins when it is first asked about.
  bool IsSettled(pid_t pid);

  // That is going on with this process, right now.
  bool IsAttachingTo(pid_t pid) const { return pid == attaching_; }

  // For a process in which the client is put.
  AttachedProcess::Options Options() const;

  // The process whose client is in place becomes a target; its hooks are not in
  // yet.
  Result<Target*> Add(AttachedProcess* attached, bool from_startup);

  // Out of its children, too, that nobody has followed.
  void TakeHooksOut(const std::shared_ptr<AttachedProcess>& attached);

  // Of the processes whose hooks are out again.
  const std::vector<AttachReport>& reports() const { return reports_; }

 private:
  Status PlaceAndHook(pid_t pid, const AttachedProcess::Options& options);
  Result<std::shared_ptr<AttachedProcess>> Place(pid_t pid,
                                                 const AttachedProcess::Options& options);
  Status PutHooksIn(const std::shared_ptr<AttachedProcess>& attached);
  void RestoreChildren(pid_t pid);

  SessionContext* context_;
  std::shared_ptr<AllocatorFinder> allocators_ = std::make_shared<AllocatorFinder>();
  SettledPrograms settled_;
  pid_t attaching_ = 0;              // to this process, right now
  std::map<uint64_t, pid_t> seeds_;  // of all so far
  std::vector<AttachReport> reports_;
};

}  // namespace heapprofd
