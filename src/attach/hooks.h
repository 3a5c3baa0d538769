// The jumps from the entries of a process's allocators into the client's image there: put
// in and taken out again, while all of its threads are stopped.
#pragma once

#include <cstdint>
#include <vector>

#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"
#include "wire/attached_client.h"

namespace heapprofd {

// What others have put on functions while they were hooked.
struct ForeignMarks {
  std::vector<Hook> probed;  // a probe of the kernel, or a breakpoint, on the first byte
  std::vector<Hook> broken;  // inside of our jump
};

class Hooks {
 public:
  // `process`: outlives it. `base`: where the image lies, which has the gates of `patches`.
  // `seed`: of the request there (SetupRequest), by which we know it for ours.
  Hooks(const RemoteProcess* process,
        uint64_t base,
        uint64_t seed,
        std::vector<PatchRecord> patches);

  bool are_in() const { return are_in_; }

  // With all threads stopped, which are `threads`. False: one is where it cannot be led
  // away from.
  Result<bool> PutIn(const std::vector<TracedThread>& threads);

  // Has those count for us that a forked child was born with; its files are ready. False:
  // the process is gone.
  bool TakeOver();

  // With all threads stopped. The process may have unloaded a module or put other bytes
  // there: only what we wrote is taken back.
  Status TakeOut();

  // From any thread, also with none stopped.
  ForeignMarks LookForMarks() const;

  // With all threads stopped: of functions that have a probe inside of our jump; when such
  // a one frees, all of its allocator, as what it frees would be missed.
  void TakeBrokenOut();

  // They stay in, and do nothing.
  void Leave();

  // The process is gone, or another program.
  void Forget() { are_in_ = false; }

 private:
  bool IsStillOurs() const;
  bool Switch(uint32_t is_on) const;

  const RemoteProcess* process_;
  uint64_t base_;
  uint64_t seed_;
  std::vector<PatchRecord> patches_;
  bool are_in_ = false;
};

}  // namespace heapprofd
