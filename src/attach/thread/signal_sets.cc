#include "attach/thread/signal_sets.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

std::string StatusOf(pid_t tid) {
  return ReadProcFile(ProcPath(tid, "status"), 16384);
}

uint64_t SignalSet(const std::string& status, const char* name) {
  return strtoull(StatusField(status, name).c_str(), nullptr, 16);
}

}  // namespace

bool IsCaught(pid_t tid, int signal) {
  return (SignalSet(StatusOf(tid), "SigCgt") >> (signal - 1) & 1) != 0;
}

bool IsHandlerDue(pid_t tid) {
  const std::string status = StatusOf(tid);
  const uint64_t pending = SignalSet(status, "SigPnd") | SignalSet(status, "ShdPnd");
  return (pending & ~SignalSet(status, "SigBlk") & SignalSet(status, "SigCgt")) != 0;
}

}  // namespace heapprofd
