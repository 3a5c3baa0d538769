#include "engine/silent_processes.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "engine/guarded_read.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxEnvironment = size_t{1} << 20;  // bytes
constexpr size_t kMaxLines = 100'000;                // of a process's list of mappings

bool HasSession(pid_t pid, const std::string& variable) {
  const std::string environment = ReadMemoryFile(pid, "environ", kMaxEnvironment);
  return environment.starts_with(variable) ||
         environment.find(std::string(1, '\0') + variable) != std::string::npos;
}

bool HasLibrary(const std::string& process) {
  std::ifstream maps(process + "/maps");
  std::string line;
  for (size_t i = 0; i < kMaxLines && std::getline(maps, line); ++i) {
    if (line.find("libheapprofd_preload") != std::string::npos)
      return true;
  }
  return false;
}

}  // namespace

size_t CountSilentProcesses(const std::string& socket_path,
                            const std::function<bool(pid_t)>& is_known) {
  std::string variable = std::string(kSessionVariable) + "=" + socket_path;
  variable += '\0';
  size_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t pid = atoi(entry.path().filename().c_str());
    if (pid > 0 && !is_known(pid) && HasSession(pid, variable) &&
        HasLibrary(entry.path()))
      ++count;
  }
  return count;
}

}  // namespace heapprofd
