// Names the frames of a profile that lie in code made at run time, with the files that
// the target's just-in-time compiler has left: see jit_names.h. They are read in a
// process without rights, for the target can have written anything.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/foreign_file.h"
#include "base/files/guarded_read.h"
#include "profile/code_table.h"
#include "profile/model.h"

namespace heapprofd {

// What is needed of a process, which may be gone.
struct JitProcess {
  // Its root directory, open (O_PATH serves): its files are looked for in there.
  int root_fd = -1;
  // Its ids, in its own name space first.
  std::vector<pid_t> pids;
  // Its user: files of others are not believed, but for root's.
  uid_t uid = 0;
  // Who is held to account for what we wait for them (base/files/foreign_file.h).
  GuardedUser user{};
  // Files that it mapped and that did not open in time while it ran.
  std::vector<std::string> late_files = {};
  // How long to wait for each file.
  uint64_t patience_ns = kOwnPatienceNs;
};

struct JitReport {
  uint64_t frames = 0;          // in code made at run time
  uint64_t unnamed_frames = 0;  // of these, still without a name
  // Where these are; kNoId for addresses outside of every known mapping.
  std::vector<MappingId> mappings;
  std::string
      error;  // why the files could not be read; empty: they were, or there is none
};

// Frames that have lines keep them. `cancel_fd`: as in WorkerLimits.
JitReport NameJitFrames(const CodeTable& code,
                        const JitProcess& process,
                        int cancel_fd = -1);

}  // namespace heapprofd
