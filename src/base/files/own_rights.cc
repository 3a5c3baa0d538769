#include "base/files/own_rights.h"

#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr size_t kOwnStatusSize = 16384;

std::string OwnStatus(const char* field) {
  return StatusField(ReadProcFile("/proc/thread-self/status", kOwnStatusSize), field);
}

}  // namespace

bool HasCapability(unsigned capability) {
  const uint64_t effective = strtoull(OwnStatus("CapEff").c_str(), nullptr, 16);
  return (effective >> capability & 1) != 0;
}

bool IsInFirstUserNamespace() {
  constexpr ino_t kFirstUserNamespace = 0xEFFFFFFD;  // the kernel's PROC_USER_INIT_INO

  struct stat ours {};

  return stat("/proc/self/ns/user", &ours) == 0 && ours.st_ino == kFirstUserNamespace;
}

bool IsSelfUnderSeccomp() {
  const std::string mode = OwnStatus("Seccomp");
  return !mode.empty() && mode != "0";
}

}  // namespace heapprofd
