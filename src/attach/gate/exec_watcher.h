// Catches programs by name when they are started, and puts the client into them before
// their first instruction.
//
// The exec gate (exec_gate.h) holds programs that may match. A thread of ours becomes the
// tracer of each, asks for its permission and does the rest; if we die, or are slow, it
// gets its permission without us.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "attach/attached_process.h"
#include "attach/gate/caught_program.h"
#include "attach/gate/caught_queue.h"
#include "attach/gate/exec_names.h"
#include "attach/gate/gate_link.h"
#include "attach/start/program_exec.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

class ExecWatcher {
 public:
  // Which programs to catch. The functions are called on a thread of the watcher.
  struct Filter {
    // Compared with the path of what is executed: the program's, or the script's.
    ExecNames names;
    // When the process has become the program.
    std::function<bool(pid_t pid, const std::string& path)> matches;
    // Whether one with our library will report to us; the error says to whom else.
    std::function<Status(pid_t pid)> reports_to_us;
    // Then a library that sees other heaps only is not asked.
    bool is_malloc_alone = false;
  };

  // Gives a connection of ExecGate. Asked again when that gate ends before it watches.
  using MakeGate = std::function<Result<GateEnds>()>;

  // To be ended by End. `between`: called now and then until the gate watches.
  static Result<std::shared_ptr<ExecWatcher>> Start(Filter filter,
                                                    AttachedProcess::Options options,
                                                    const MakeGate& make_gate,
                                                    const std::function<void()>& between);

  // Longer than all waits for a program.
  static constexpr uint64_t kEndNs = 3'000'000'000;

  // To a program of which there is no conclusion after that, and to all behind it.
  static Status Hangs();

  // Catches no more, and calls `between` every few milliseconds until that is so.
  // kUnavailable: its thread hangs with a program; it is left behind, and lives as long
  // as that.
  Status End(const std::function<void()>& between);

  // The same without a wait: the thread ends when it can.
  void Leave();

  ~ExecWatcher() = default;
  ExecWatcher(const ExecWatcher&) = delete;
  ExecWatcher& operator=(const ExecWatcher&) = delete;

  // Readable when something has been caught, or concluded.
  int fd() const { return queue_.fd(); }

  // In a child that was forked: the gate must see when the parent is gone.
  void LeaveToParent() { gate_.Close(); }

  // They wait until they are accepted or refused, at most a second.
  std::vector<std::shared_ptr<CaughtProgram>> TakeCaught() { return queue_.TakeCaught(); }

  // Programs that matched but could not be caught, one line each, so far.
  std::vector<std::string> TakeProblems();

 private:
  // A thread that waits for permission to execute a program.
  struct HeldExec {
    uint64_t serial;
    pid_t tid;
    std::string path;
    uint64_t until_ns;  // then it has its permission in any case
  };

  ExecWatcher(Filter filter, AttachedProcess::Options options, GateLink gate)
      : filter_(std::move(filter)),
        options_(std::move(options)),
        gate_(std::move(gate)) {}

  void AskToEnd();
  void Catch();
  // Waits for the next one; false: there will be none.
  bool AwaitHeld();
  void HearGate();
  void NoteNews(const GateLink::News& news);
  void CatchOne(const HeldExec& held);
  // kGone: also when it is not ours, of which a problem has been noted.
  AwaitedExec TraceExec(const HeldExec& held,
                        pid_t pid,
                        const std::function<bool()>& may_wait,
                        TracedThread* thread);
  Status PutClientIn(TracedThread* thread, const std::function<bool()>& may_wait);
  bool MayTakeLonger(uint64_t since_ns);

  Filter filter_;
  AttachedProcess::Options options_;
  // Of the catching thread.
  GateLink gate_;
  AllocatorFinder finder_;
  std::deque<HeldExec> held_;
  CaughtQueue queue_;  // of both threads
  std::thread catcher_;
};

}  // namespace heapprofd
