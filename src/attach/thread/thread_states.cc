#include "attach/thread/thread_states.h"

#include <string>

#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

// 0: it is gone.
char StateOf(const std::string& directory) {
  const std::string state =
      StatusField(ReadProcFile(directory + "/status", 16384), "State");
  return state.empty() ? '\0' : state.front();
}

}  // namespace

bool IsUninterruptible(pid_t tid) {
  return StateOf(ProcPath(tid, "")) == 'D';
}

bool IsRunnable(pid_t tid) {
  return StateOf(ProcPath(tid, "")) == 'R';
}

bool IsReady(pid_t tid) {
  const char state = StateOf(ProcPath(tid, ""));
  return state == 'R' || state == 't';
}

bool IsDead(pid_t pid, pid_t tid) {
  const char state = StateOf(ProcPath(pid, "task/" + std::to_string(tid)));
  return state == '\0' || state == 'Z' || state == 'X';
}

}  // namespace heapprofd
