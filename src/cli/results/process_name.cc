#include "cli/results/process_name.h"

#include "base/text.h"

namespace heapprofd {
namespace {

// A title has more than a name in it. A file can have blanks in its name, too, but then
// the executable has the same.
bool IsTitle(const std::string& argv0, const ProcessDescription& process) {
  return argv0.find(' ') != std::string::npos &&
         FileName(argv0) != FileName(process.executable);
}

}  // namespace

std::string ProgramName(const TargetProfile& profile) {
  const ProcessDescription& process = profile.process;
  std::string name = process.cmdline.empty() ? process.executable : process.cmdline[0];
  if (IsTitle(name, process))
    name.resize(name.find_first_of(" :"));
  return Printable(FileName(name));
}

std::string ProcessName(const TargetProfile& profile) {
  if (profile.process.pid == 0)  // of a file that does not tell
    return ProgramName(profile);
  return ProgramName(profile) + " (pid " + std::to_string(profile.process.pid) + ")";
}

}  // namespace heapprofd
