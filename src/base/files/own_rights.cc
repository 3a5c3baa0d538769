#include "base/files/own_rights.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
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
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

bool IsInFirstUserNamespace() {
  constexpr ino_t kFirstUserNamespace = 0xEFFFFFFD;  // the kernel's PROC_USER_INIT_INO

  struct stat ours {};

  return stat("/proc/self/ns/user", &ours) == 0 && ours.st_ino == kFirstUserNamespace;
}

std::string MemoryIsClosed() {
  return std::string(": its memory may not be read") +
         (geteuid() != 0 ? ": it is another user's, or not dumpable (it was setuid, has "
                           "capabilities, or wants it so); run heap_profile as root"
          : !IsInFirstUserNamespace()
              ? ", not by root of a user name space, whose rights end with it; run "
                "heap_profile outside, as root"
          : HasCapability(CAP_SYS_PTRACE)
              ? ", not even by root; a sandbox or a security module forbids it"
              : ", and heap_profile is root without CAP_SYS_PTRACE; give its container "
                "that capability");
}

bool IsSelfUnderSeccomp() {
  const std::string mode = OwnStatus("Seccomp");
  return !mode.empty() && mode != "0";
}

}  // namespace heapprofd
