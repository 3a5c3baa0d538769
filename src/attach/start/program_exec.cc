#include "attach/start/program_exec.h"

#include <sys/ptrace.h>

#include "attach/thread/interrupted_call.h"

namespace heapprofd {

// It stops when it has executed the program if it is traced by then, and it is asked to
// stop in any case: then it does when it comes out of the call, which may be after that,
// because the call has failed, or because the kernel has it begin the call anew.
AwaitedExec AwaitExec(const std::function<bool()>& may_wait,
                      const std::function<bool()>& is_same_image,
                      TracedThread* thread) {
  while (true) {
    int status = 0;
    const TracedThread::Wait outcome = thread->WaitForEvent(may_wait, &status);
    if (outcome != TracedThread::Wait::kStopped)
      return outcome == TracedThread::Wait::kGone ? AwaitedExec::kGone
                                                  : AwaitedExec::kTimedOut;
    if (status >> 16 == PTRACE_EVENT_EXEC) {
      thread->NoteStopped();
      return AwaitedExec::kDone;
    }
    if (status >> 16 == PTRACE_EVENT_STOP) {
      thread->NoteStopped();
      if (!is_same_image())
        return AwaitedExec::kDone;
      if (!IsExecBegunAnew(thread->context().registers()))
        return AwaitedExec::kFailed;
    }
    thread->PassOn(status);
    thread->Interrupt();
  }
}

}  // namespace heapprofd
