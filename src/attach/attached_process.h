// A running process with our client in it: placed, switched on, switched off, without a
// call of any of the process's functions and without a moment at which our death would
// hurt it. docs/design/attach.md has the method.
//
// One thread of ours must do all of it (ptrace).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attach/allocators.h"
#include "attach/borrowed_thread.h"
#include "attach/code_cave.h"
#include "attach/patch_plan.h"
#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "wire/attached_client.h"

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
  struct Options {
    uint64_t ring_size = 0;  // bytes, a power of two
    ChildrenMode children = ChildrenMode::kIgnored;
    // Processes of this session, by AttachedProcess::seed. Their forked children have
    // hooks that count already.
    std::map<uint64_t, pid_t> recorded = {};
  };

  // Places the client; the hooks are not in yet. Undoes first what a killed engine has
  // left. kUnavailable with the reason when the process cannot be attached to. `held`:
  // its only thread, stopped by us before it has run; it stays so.
  static Result<std::unique_ptr<AttachedProcess>> Place(pid_t pid,
                                                        const Options& options,
                                                        AllocatorFinder* finder,
                                                        TracedThread* held = nullptr);

  ~AttachedProcess();
  AttachedProcess(const AttachedProcess&) = delete;
  AttachedProcess& operator=(const AttachedProcess&) = delete;

  pid_t pid() const { return process_.pid(); }

  // Not the same in any two sessions of processes.
  uint64_t seed() const { return request_.seed; }

  // The session's two memory files (wire/shared_memory.h), still empty. Once each.
  ScopedFd TakeEngineFile() { return std::move(engine_file_); }

  ScopedFd TakeClientFile() { return std::move(client_file_); }

  // A forked child whose hooks have counted since it began.
  bool counts_already() const { return counts_already_; }

  // Puts the hooks in, or has those that count already record. The shared memory must be
  // ready.
  Status PutHooksIn();

  // The same for a program that is being started; its thread stays stopped.
  Status PutHooksInHeld(const TracedThread& thread);

  // Takes them out again and verifies that every byte is as it was. OK when the process
  // has ended or become another program.
  Status TakeHooksOut();

  // Lets other engines attach, too: at the latest when the hooks are in.
  void Unlock() const { process_.Unlock(); }

  // Whether it has executed a program since, or ended. Anybody may ask: that is not
  // waited for, and false then.
  bool HasBecomeAnother() const { return process_.HasBecomeAnother(); }

  // The thread of it that was alive when it was opened: see LiveThread.
  pid_t opened_view() const { return process_.opened_view(); }

  // Takes out what an engine that was killed has left, or what a process has from its
  // parent.
  static Status Restore(pid_t pid);

  const AttachReport& report() const { return report_; }

 private:
  explicit AttachedProcess(RemoteProcess process) : process_(std::move(process)) {}

  Status PlaceClient(const Options& options, AllocatorFinder* finder, TracedThread* held);
  bool FindCountingChild(const std::vector<MapEntry>& maps, const Options& options);
  Status PlaceInChild(const std::vector<MapEntry>& maps, const Options& options);
  Status UndoLeftovers(const std::vector<MapEntry>& maps);
  Status UndoImage(uint64_t base, const AttachState& state);
  Status ChoosePlace(const std::vector<MapEntry>& maps, const ProcessCode& code);
  SetupRequest MakeRequest(const Options& options, const ProcessCode& code) const;
  void FillRequest(const Options& options, SetupRequest* request) const;
  Status PrepareCode(const std::vector<MapEntry>& maps, CodeCave* cave);
  Status PlaceImage(const std::vector<MapEntry>& maps, TracedThread* held);
  Status FillImage();
  Status RunSetupIn(TracedThread* thread);
  Status OpenFiles(const SetupResult& result, pid_t holder);
  Status WriteGates() const;
  OurCode SetupCode() const;
  bool IsStillOurs() const;
  Result<bool> PatchAll(const std::vector<TracedThread>& threads);
  Status RestoreAll();

  uint64_t StateAddress() const { return base_ + state_offset_; }

  RemoteProcess process_;
  uint64_t base_ = 0;  // of the image
  uint32_t state_offset_ = 0;
  uint32_t wiped_offset_ = 0;
  bool is_placed_ = false;  // the image lies there from an earlier session
  bool can_open_mappings_ = false;
  bool is_hooked_ = false;
  bool counts_already_ = false;  // a forked child (wire/attached_client.h, kHasOwnFiles)
  PatchPlan plan_;
  SetupRequest request_{};
  ScopedFd engine_file_;
  ScopedFd client_file_;
  AttachReport report_;
};

}  // namespace heapprofd
