#include "base/files/memory_limits.h"

#include <linux/capability.h>

#include <cstdlib>
#include <sstream>

#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxText = 16384;

bool MayLockAnything(const std::string& status) {
  const uint64_t rights =
      strtoull(StatusField(status, "CapEff").c_str(), nullptr, /*base=*/16);
  return (rights >> CAP_IPC_LOCK & 1) != 0;
}

}  // namespace

std::optional<uint64_t> LimitIn(const std::string& limits, const std::string& name) {
  const size_t at = limits.find("\n" + name + " ");
  if (at == std::string::npos)
    return std::nullopt;
  std::istringstream words(limits.substr(at + 1 + name.size()));
  uint64_t limit = 0;
  return words >> limit ? std::optional(limit) : std::nullopt;
}

uint64_t SizeIn(const std::string& status, const std::string& name) {
  return strtoull(StatusField(status, name).c_str(), nullptr, 10) * 1024;
}

bool IsMemoryLimited(const std::string& status,
                     const std::string& limits,
                     uint64_t bytes) {
  const uint64_t size = SizeIn(status, "VmSize");
  const std::optional<uint64_t> room = LimitIn(limits, "Max address space");
  if (SizeIn(status, "VmLck") > 0 || (room && size + bytes > *room))
    return true;
  const std::optional<uint64_t> lockable = LimitIn(limits, "Max locked memory");
  return lockable && !MayLockAnything(status) && size <= *lockable &&
         size + bytes > *lockable;
}

bool IsMemoryLimited(pid_t pid, uint64_t bytes) {
  return IsMemoryLimited(ReadProcFile(ProcPath(pid, "status"), kMaxText),
                         ReadProcFile(ProcPath(pid, "limits"), kMaxText), bytes);
}

}  // namespace heapprofd
