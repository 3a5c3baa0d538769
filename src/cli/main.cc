// heap_profile: entry point.
#include <algorithm>
#include <csignal>
#include <string>

#include "base/print.h"
#include "base/standard_fds.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/record/own_limits.h"

namespace heapprofd {
namespace {

int WithOutput(int exit_code) {
  const Status status = FlushOutput();
  return status.ok() || exit_code != kExitOk ? exit_code : Fail(status);
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  heapprofd::HoldStandardFds();
  heapprofd::LiftOwnLimits();
  signal(SIGCHLD, SIG_DFL);  // who ignores it never learns that a child has ended
  const std::string path = argc > 0 ? argv[0] : "heap_profile";
  return heapprofd::WithOutput(
      heapprofd::RunHeapProfile(std::string(heapprofd::FileName(path)),
                                heapprofd::Words(argv + std::min(argc, 1), argv + argc)));
}
