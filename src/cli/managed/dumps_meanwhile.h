// Dumps of Java heaps in the middle of a recording (--java-dumps), one for each native
// dump that is taken on request or by schedule, so that both heaps are known at the same
// moments. Each is taken by a process of its own, heap_profile java, into a nameless file
// beside the trace: the recording goes on meanwhile. One at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "cli/managed/left_out_dumps.h"
#include "cli/record/output_directory.h"
#include "cli/run_command.h"

namespace heapprofd {

class DumpsMeanwhile {
 public:
  struct Limits {
    uint32_t most = 0;   // of each process
    bool quiet = false;  // nothing but what went wrong is told
  };

  // Of these processes, and of no others that get their numbers; in `directory`, which
  // outlives this, files have names for a moment.
  DumpsMeanwhile(const std::vector<pid_t>& pids,
                 const OutputDirectory& directory,
                 Limits limits);

  DumpsMeanwhile(const DumpsMeanwhile&) = delete;
  DumpsMeanwhile& operator=(const DumpsMeanwhile&) = delete;

  // Ends the dump that is being taken; nothing is said.
  ~DumpsMeanwhile();

  // Of one that is started later.
  void set_program(pid_t pid);

  // Begins what is due and takes what has come; never waits. `native_dumps`: how many
  // there were until now. Gives lines to print; "": there are none.
  std::string Look(uint64_t native_dumps);

  // The end is near: what is due is left out, and what comes.
  void BeginNoMore();

  // The recording is over: waits for the dump that is being taken; when `stop_fd` is
  // readable that is ended. Gives lines to print.
  std::string End(int stop_fd);

  // Puts them behind what is in the finished trace. False: one that was begun is missing,
  // which has been said.
  bool AddTo(const FilePlace& trace);

 private:
  struct Process {
    pid_t pid = 0;
    ScopedFd handle = {};  // pidfd
    int error = 0;         // why there is none
  };

  struct Dump {
    pid_t pid = 0;
    uint64_t ts = 0;           // CLOCK_BOOTTIME
    std::string process = {};  // for messages
    std::string name = {};     // of its file; empty: there is none
    ScopedFd file = {};
  };

  void Add(pid_t pid);
  void Request();
  std::string BeginNext();
  // Why there is nobody to ask; "": current_.process says whom.
  std::string FindProcess(const Process& process);
  std::string Take(const Impatience& impatience);

  std::vector<Process> processes_;
  const OutputDirectory& directory_;
  Limits limits_;
  uint64_t seen_dumps_ = 0;
  uint32_t begun_ = 0;      // requests of which a dump was begun
  bool has_begun_ = false;  // that of `due_`
  bool is_ending_ = false;
  std::deque<size_t> due_;  // in `processes_`, of the request that is being served
  std::optional<RunningCommand> running_;
  Dump current_;  // which that takes
  std::vector<Dump> taken_;
  LeftOutDumps left_out_;
  bool has_failed_ = false;
};

}  // namespace heapprofd
