// One profiled process image: what is known of it, from Welcome on and after its end, and
// its recorder as long as there is one.
//
// Order of events is ring order. The target is hostile: every record is checked,
// everything it can make grow is bounded, and the worst a lying target gets is a wrong
// profile of itself.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/session_config.h"
#include "engine/target/followed_children.h"
#include "engine/target/program_requests.h"
#include "engine/target/shared_memory.h"
#include "engine/target/target_account.h"
#include "engine/target/target_recorder.h"
#include "engine/tsc_clock.h"
#include "engine/user_budget.h"
#include "profile/code_table.h"
#include "profile/model.h"
#include "unwind/address_space.h"

namespace heapprofd {

class Target {
 public:
  struct Origin {
    pid_t pid;
    pid_t thread;               // of it, that lives: the process is read by way of it
    int process;                // a pidfd of it, which was there before
    bool from_startup = true;   // recorded from its first allocation on
    bool is_attached = false;   // its client was not preloaded
    std::string unhooked = {};  // see TargetProfile
  };

  // Reads the process's maps: the process waits in its handshake meanwhile. All of it is
  // opened by number, and when that is done the process still lives: no other is looked at.
  static Result<std::unique_ptr<Target>> Create(const Origin& origin,
                                                const SessionConfig& config,
                                                ModuleCache* modules,
                                                const TscClock* clock);

  // The same with memory that the process may have mapped already.
  static Result<std::unique_ptr<Target>> CreateWith(std::unique_ptr<SharedMemory> memory,
                                                    const Origin& origin,
                                                    const SessionConfig& config,
                                                    ModuleCache* modules,
                                                    const TscClock* clock);

  // False after ReleaseRecorder: recorder() is gone.
  bool is_recording() const { return recorder_ != nullptr; }

  TargetRecorder& recorder() { return *recorder_; }

  const TargetRecorder& recorder() const { return *recorder_; }

  // The session is over for this target (TargetRecorder::Stop).
  void Stop(TargetEnd end);

  // A limit of the engine itself has ended its session.
  void NoteGuardrail() { profile_.hit_guardrail = true; }

  // Drops what is only needed while recording (live samples, shared memory, unwinder).
  void ReleaseRecorder();

  // Forked children of the process, also when it has ended.
  FollowedChildren& children() { return children_; }

  // For the dumps that the program asks for.
  ProgramRequests& requests() { return requests_; }

  const TargetProfile& profile() const { return profile_; }

  // For whoever finds names; the rest of the profile is written here alone.
  CodeTable code() { return CodeOf(profile_); }

  // Why there are no samples, for people; empty: there are some.
  void set_reason(std::string reason) { profile_.reason = std::move(reason); }

  // See OwnMallocs (engine/own_malloc.h).
  void NoteOwnMalloc() { profile_.has_own_malloc = true; }

  const AddressSpace& address_space() const { return code_; }

  // The process's root directory, also when it is gone and has left code that only its
  // files can name; -1 when there is none.
  int root_fd() const { return root_ != nullptr ? root_->get() : -1; }

  // The user whose limits it counts against.
  uid_t user() const { return account_.user(); }

  // The same, for what is waited for when the process is gone.
  const GuardedUser& held_to_account() const { return held_to_account_; }

  pid_t pid() const { return profile_.process.pid; }

  // The process's id as it knows it itself.
  pid_t own_pid() const { return own_pid_; }

  // So far.
  uint64_t lost_records() const;

  // Its client was not preloaded.
  bool is_attached() const { return is_attached_; }

 private:
  Target(const Origin& origin, bool follows_children, ModuleCache* modules);

  TargetProfile profile_;
  GuardedUser held_to_account_;
  std::shared_ptr<const ScopedFd> root_;
  pid_t own_pid_;
  bool is_attached_;
  AddressSpace code_;
  ProgramRequests requests_;
  TargetAccount account_;
  FollowedChildren children_;
  std::unique_ptr<TargetRecorder> recorder_;
};

}  // namespace heapprofd
