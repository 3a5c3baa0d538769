#include "engine/silent_processes.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/files/guarded_read.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxEnvironment = size_t{1} << 20;  // bytes
constexpr size_t kMaxMaps = size_t{16} << 20;        // bytes

bool HasSession(pid_t pid, const std::string& variable) {
  const std::string environment = ReadMemoryFile(pid, "environ", kMaxEnvironment).text;
  return environment.starts_with(variable) ||
         environment.find(std::string(1, '\0') + variable) != std::string::npos;
}

bool HasLibrary(pid_t pid) {
  return ReadMemoryFile(pid, "maps", kMaxMaps).text.find("libheapprofd_preload") !=
         std::string::npos;
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
    if (pid > 0 && !is_known(pid) && HasSession(pid, variable) && HasLibrary(pid))
      ++count;
  }
  return count;
}

}  // namespace heapprofd
