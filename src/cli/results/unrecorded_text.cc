#include "cli/results/unrecorded_text.h"

#include "base/text.h"

namespace heapprofd {
namespace {

// Cause and remedy.
const char* TextOf(UnrecordedReason reason) {
  switch (reason) {
    case UnrecordedReason::kStatic:
      return "statically linked, so no library can be preloaded; use dynamically linked "
             "builds";
    case UnrecordedReason::k32Bit:
      return "32-bit, and only 64-bit programs can be recorded; use 64-bit builds";
    case UnrecordedReason::kOtherMachine:
      return "for another machine, and only programs for this one can be recorded; use "
             "builds for this machine";
    case UnrecordedReason::kPrivileged:
      return "gaining privileges at the start (setuid or capabilities), so the loader "
             "ignores LD_PRELOAD; run heap_profile as root";
    case UnrecordedReason::kCleanedEnvironment:
      return "started with a cleaned environment (env -i, sudo and the like); let "
             "LD_PRELOAD and HEAPPROFD_SESSION through";
    case UnrecordedReason::kDeclined:
      return "the profiler could not take them on; the brackets say why";
    case UnrecordedReason::kLate:
      return "ended, or waiting no longer (1 s), when the profiler answered, or too many "
             "at once; do not stop it, and leave it some processor time";
    case UnrecordedReason::kConfined:
      return "begun under a seccomp filter, which might have killed them for system "
             "calls "
             "of the profiler's; profile with the program's sandbox switched off";
    case UnrecordedReason::kNoSpace:
      return "no buffer was mapped: they ended before, or no address space was left "
             "for it; if they ran on, raise their ulimit -v, or use a smaller "
             "--shmem-size";
    case UnrecordedReason::kOutOfReach:
      return "begun where the profiler's socket is not there or not allowed (in a "
             "chroot, "
             "in a mount name space of their own, or as another user); use -p or -n, "
             "which need none";
    case UnrecordedReason::kNoDescriptor:
      return "without a file descriptor left to ask the profiler with; raise their "
             "ulimit -n";
    case UnrecordedReason::kNotLoaded:
      break;
  }
  return "never reported: they ended before, or did not load the profiling library; "
         "LD_DEBUG=libs shows what is loaded";
}

}  // namespace

std::vector<std::string> UnrecordedWarnings(
    const std::vector<UnrecordedPrograms>& groups) {
  std::vector<std::string> lines;
  for (const UnrecordedPrograms& group : groups) {
    std::string line = std::to_string(group.count) +
                       (group.count == 1 ? " program was" : " programs were") +
                       " not recorded (";
    for (const std::string& name : group.names)
      line += (&name == group.names.data() ? "" : ", ") + Printable(name);
    if (group.names.size() < group.count)
      line += ", ...";
    lines.push_back(line + "): " + TextOf(group.reason));
  }
  return lines;
}

}  // namespace heapprofd
