#include "attach/shared_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "attach/remote_process.h"
#include "base/fd_path.h"
#include "wire/client_tables.h"

namespace heapprofd {
namespace {

std::string MappingPath(pid_t pid, uint64_t start, uint64_t end) {
  std::array<char, 64> range{};
  snprintf(range.data(), range.size(), "map_files/%llx-%llx",
           static_cast<unsigned long long>(start), static_cast<unsigned long long>(end));
  return ProcPath(pid, range.data());
}

// The process is free to put any file of its choice at that place, and we may have more
// rights than it: only an anonymous memory file that can be sealed is taken, and nothing
// else is even opened.
ScopedFd OpenMemoryFile(const std::string& path) {
  const ScopedFd place(open(path.c_str(), O_PATH | O_CLOEXEC));

  struct stat status {};

  if (!place.valid() || fstat(place.get(), &status) != 0)
    return ScopedFd();
  errno = EINVAL;
  if (!S_ISREG(status.st_mode) || status.st_nlink != 0)
    return ScopedFd();
  ScopedFd file(open(FdPath(place.get()).c_str(), O_RDWR | O_CLOEXEC));
  const int seals = file.valid() ? fcntl(file.get(), F_GET_SEALS) : -1;
  if (seals < 0 || (seals & F_SEAL_SEAL) != 0)
    return ScopedFd();
  return file;
}

}  // namespace

bool CanOpenMappings(pid_t pid, const std::vector<MapEntry>& maps) {
  const auto file = std::find_if(maps.begin(), maps.end(),
                                 [](const MapEntry& entry) { return entry.inode != 0; });
  return file != maps.end() &&
         ScopedFd(
             open(MappingPath(pid, file->start, file->end).c_str(), O_PATH | O_CLOEXEC))
             .valid();
}

bool MayGrowFiles(pid_t pid, uint64_t size) {
  const std::string limits = ReadProcFile(ProcPath(pid, "limits"), 16384);
  constexpr std::string_view kName = "Max file size";
  const size_t at = limits.find(kName);
  if (at == std::string::npos)
    return false;
  const char* value = limits.c_str() + at + kName.size();
  while (*value == ' ')
    ++value;
  return strncmp(value, "unlimited", 9) == 0 || strtoull(value, nullptr, 10) > size;
}

SharedFiles FilesOfDescriptors(pid_t holder, const SetupResult& result) {
  const std::string directory = ProcPath(holder, "fd/");
  return {.engine = OpenMemoryFile(directory + std::to_string(result.engine_fd)),
          .client = OpenMemoryFile(directory + std::to_string(result.client_fd))};
}

SharedFiles MappedFiles(pid_t pid, const SetupResult& result) {
  constexpr uint64_t kBytesPerPage = 4096;
  const uint64_t engine_end =
      result.engine_block +
      (sizeof(EngineBlock) + kBytesPerPage - 1) / kBytesPerPage * kBytesPerPage;
  return {.engine = OpenMemoryFile(MappingPath(pid, result.engine_block, engine_end)),
          .client = OpenMemoryFile(MappingPath(pid, result.client_block,
                                               result.client_block + kClientMapped))};
}

}  // namespace heapprofd
