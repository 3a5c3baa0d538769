#include "attach/thread/stragglers.h"

#include <sys/ptrace.h>

#include <utility>
#include <vector>

#include "attach/thread/traced_thread.h"

namespace heapprofd {
namespace {

thread_local std::vector<TracedThread> t_stragglers;

}  // namespace

void AddStraggler(const TracedThread& thread) {
  t_stragglers.push_back(thread);
}

bool TakeStraggler(pid_t tid) {
  return std::erase_if(t_stragglers, [tid](const TracedThread& straggler) {
           return straggler.tid() == tid;
         }) > 0;
}

void ReleaseStragglers() {
  for (TracedThread& thread : std::exchange(t_stragglers, {})) {
    const TracedThread::Wait outcome = thread.WaitForStop(/*deadline_ns=*/0);
    if (outcome == TracedThread::Wait::kTimedOut)
      AddStraggler(thread);
    else if (outcome == TracedThread::Wait::kStopped)
      ptrace(PTRACE_DETACH, thread.tid(), 0, 0);
  }
}

size_t CountStragglers() {
  return t_stragglers.size();
}

}  // namespace heapprofd
