// Catches programs by name when they are started, and puts the client into them before
// their first instruction.
//
// Every exec waits for our leave (exec_events.h). A matching program is handed to a
// thread that becomes its tracer, gives the leave and does the rest; only matching
// programs wait for that. If we die, the kernel gives all leaves, and the threads go on
// by themselves.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "attach/attached_process.h"
#include "attach/exec_events.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class ExecWatcher {
 public:
  // A program that has been caught. It waits until Accept or Refuse is called, at most a
  // second.
  class Caught {
   public:
    explicit Caught(std::unique_ptr<AttachedProcess> process)
        : process_(std::move(process)) {}

    AttachedProcess& process() { return *process_; }

    // Its shared memory is ready: the hooks go in, then the result is there.
    Status Accept(std::unique_ptr<AttachedProcess>* process);
    void Refuse();

   private:
    friend class ExecWatcher;
    enum class Decision : uint8_t { kNone, kAccept, kRefuse };

    bool WaitForDecision();
    void Conclude(Status status);

    std::mutex mutex_;
    std::condition_variable changed_;
    Decision decision_ = Decision::kNone;
    bool is_concluded_ = false;
    Status status_;
    std::unique_ptr<AttachedProcess> process_;
  };

  // Which programs to catch. Both are called on threads of the watcher, with the path of
  // what is executed: the program's, or the script's.
  struct Filter {
    // At once, for every exec there is: must not wait for anything.
    std::function<bool(const std::string& path)> may_match;
    // When the process has become the program.
    std::function<bool(pid_t pid, const std::string& path)> matches;
    // Whether one with our library will report to us; the error says to whom else.
    std::function<Status(pid_t pid)> reports_to_us;
    // Then a library that sees other heaps only is not asked.
    bool is_malloc_alone = false;
  };

  // kUnavailable: not possible here, and what it needs.
  static Result<std::unique_ptr<ExecWatcher>> Start(Filter filter, uint64_t ring_size);

  ~ExecWatcher();
  ExecWatcher(const ExecWatcher&) = delete;
  ExecWatcher& operator=(const ExecWatcher&) = delete;

  // Readable when something has been caught.
  int fd() const { return caught_event_.get(); }

  // In a child that was forked (see ExecEvents).
  void LeaveToParent() { events_->LeaveToParent(); }

  std::vector<std::shared_ptr<Caught>> TakeCaught();

  // Programs that matched but could not be caught, one line each, so far.
  std::vector<std::string> TakeProblems();

 private:
  ExecWatcher(Filter filter, uint64_t ring_size)
      : filter_(std::move(filter)), ring_size_(ring_size) {}

  void Offer(const std::shared_ptr<const HeldExec>& exec);
  void Catch();
  void CatchOne(const std::shared_ptr<const HeldExec>& held);
  // kGone: also when it is not ours, of which a problem has been noted.
  TracedThread::Exec TraceExec(const std::shared_ptr<const HeldExec>& held,
                               pid_t pid,
                               const std::function<bool()>& may_wait,
                               TracedThread* thread);
  Status PutClientIn(TracedThread* thread, const std::function<bool()>& may_wait);
  bool MayTakeLonger(uint64_t since_ns);
  void NoteProblem(const Status& status);

  Filter filter_;
  uint64_t ring_size_;
  AllocatorFinder finder_;  // of the catching thread
  std::shared_ptr<ExecEvents> events_;
  ScopedFd caught_event_;
  std::mutex mutex_;  // guards all below
  std::condition_variable has_held_;
  std::vector<std::shared_ptr<const HeldExec>> held_;
  std::set<pid_t> in_exec_;  // being caught: further events of theirs are allowed
  std::vector<std::shared_ptr<Caught>> caught_;
  std::vector<std::string> problems_;
  bool is_stopping_ = false;
  std::thread catcher_;
};

}  // namespace heapprofd
