// --with-java: what a recording of virtual machines has beside their native heaps. When
// it is over each is asked for its figures and a dump of its heap. The dump becomes part
// of the trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "cli/managed/resident_table.h"
#include "hotspot/java_process.h"

namespace heapprofd {

class NativeSide;

class ManagedHeaps {
 public:
  // Of processes that run. Errors: one of them is no virtual machine that can be asked.
  static Result<ManagedHeaps> Of(const std::vector<pid_t>& pids);

  // Takes figures and dumps, those of the virtual machine first: a dump allocates. Says
  // what cannot be had; Ctrl-C ends it.
  void Take(bool quiet);

  // Puts the dumps behind what is in the finished trace, and prints where the memory is.
  // False: one of them is missing, which has been said.
  bool AddTo(const FilePlace& trace, bool quiet);

 private:
  struct Heap {
    JavaProcess process;
    ScopedFd dump = {};  // invalid: there is none
    uint64_t ts = 0;     // CLOCK_BOOTTIME
    std::optional<MachineMemory> memory = {};
    std::optional<ResidentMemory> resident = {};
  };

  static void TakeOne(Heap* heap, bool quiet);
  // `native`: of the trace; nullptr: nothing is to be printed.
  static Status AddOne(Heap* heap, const FilePlace& trace, NativeSide* native);

  std::vector<Heap> heaps_;
};

}  // namespace heapprofd
