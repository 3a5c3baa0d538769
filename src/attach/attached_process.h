// A running process with our client in it: placed, switched on, switched off, without a
// call of any of the process's functions and without a moment at which our death would
// hurt it. docs/design/attach.md has the method.
//
// One thread of ours must do all of it (ptrace).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attach/allocators.h"
#include "attach/hooks.h"
#include "attach/placement.h"
#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"
#include "wire/memory_files.h"

namespace heapprofd {

struct AttachReport {
  std::vector<std::string> allocators;  // paths of the modules that are hooked
  std::vector<std::string> unpatched;   // functions that are not, and why
  size_t threads = 0;                   // when the hooks went in
  uint64_t one_thread_stopped_ns = 0;   // to place the client
  uint64_t attach_stopped_ns = 0;       // all threads, to put the hooks in
  uint64_t detach_stopped_ns = 0;       // all threads, to take them out
};

class AttachedProcess {
 public:
  using Options = AttachOptions;

  // Places the client (placement.h); the hooks are not in yet, and until they are no other
  // engine can attach.
  static Result<std::unique_ptr<AttachedProcess>> Place(pid_t pid,
                                                        const Options& options,
                                                        AllocatorFinder* finder,
                                                        TracedThread* held = nullptr);

  ~AttachedProcess();
  AttachedProcess(const AttachedProcess&) = delete;
  AttachedProcess& operator=(const AttachedProcess&) = delete;

  pid_t pid() const { return process_.pid(); }

  // Not the same in any two sessions of processes.
  uint64_t seed() const { return seed_; }

  // The session's memory, which the process has mapped. Once.
  std::unique_ptr<SharedMemory> TakeMemory() { return std::move(memory_); }

  // A forked child whose hooks have counted since it began.
  bool counts_already() const { return counts_already_; }

  // Puts the hooks in, or has those that count already record. The shared memory must be
  // ready.
  Status PutHooksIn();

  // The same for a program that is being started; its thread stays stopped.
  Status PutHooksInHeld(const TracedThread& thread);

  // Paths of the allocators that the process has loaded since it was attached to, in which
  // there are no hooks.
  std::vector<std::string> AllocatorsSince(AllocatorFinder* finder) const;

  // Takes them out again and verifies that every byte is as it was. OK when the process
  // has ended or become another program.
  Status TakeHooksOut();

  // What others have put on the hooked functions meanwhile. May wait for the process.
  ForeignMarks LookForMarks() const { return hooks_.LookForMarks(); }

  // Takes out the hooks that a probe in the middle of our jump has broken: the program
  // would not survive the next call.
  Status TakeBrokenHooksOut();

  // Lets other engines attach, too: at the latest when the hooks are in.
  void Unlock() const { process_.Unlock(); }

  // Whether it has executed a program since, or ended. Anybody may ask: that is not
  // waited for, and false then.
  bool HasBecomeAnother() const { return process_.HasBecomeAnother(); }

  // The thread of it that was alive when it was opened: see LiveThread.
  pid_t opened_view() const { return process_.opened_view(); }

  const AttachReport& report() const { return report_; }

 private:
  AttachedProcess(RemoteProcess process, PlacedClient client);

  RemoteProcess process_;
  uint64_t seed_;
  bool counts_already_;
  std::unique_ptr<SharedMemory> memory_;
  Hooks hooks_;
  AttachReport report_;
};

}  // namespace heapprofd
