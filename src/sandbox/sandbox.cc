#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

namespace heapprofd {
namespace {

constexpr uid_t kNobody = 65534;  // and its group

void CloseRange(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
    return;
  // Before Linux 5.9.
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (unsigned fd = first; fd <= last && fd < limit.rlim_max; ++fd)
    close(static_cast<int>(fd));
}

bool IsUser(uid_t uid, gid_t gid) {
  std::array<uid_t, 3> uids{};
  std::array<gid_t, 3> gids{};
  return getresuid(uids.data(), &uids[1], &uids[2]) == 0 &&
         getresgid(gids.data(), &gids[1], &gids[2]) == 0 &&
         std::ranges::all_of(uids, [&](uid_t other) { return other == uid; }) &&
         std::ranges::all_of(gids, [&](gid_t other) { return other == gid; });
}

bool HasCapabilities(uint64_t wanted) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  return syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[0].effective & wanted) == wanted;
}

// Root in a container may lack what it takes; who starts a process that becomes nobody
// must also be able to end it. Makes nobody's gid the saved one: a user namespace may
// have no such user.
bool CanBecomeNobody() {
  constexpr auto kSame = static_cast<gid_t>(-1);
  return HasCapabilities(CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_SETGID) |
                         CapabilityBit(CAP_KILL)) &&
         setresgid(kSame, kSame, kNobody) == 0;
}

}  // namespace

Status DropCapabilities(uint64_t keep) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0)
    return Status::FromErrno("cannot drop capabilities", errno);
  for (unsigned i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; ++i) {
    if ((keep & CapabilityBit(i)) == 0)
      (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);  // refused without CAP_SETPCAP
  }
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (size_t word = 0; word < sets.size(); ++word) {
    sets[word].permitted &= static_cast<uint32_t>(keep >> (32 * word));
    sets[word].effective &= sets[word].permitted;
    sets[word].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets.data()) != 0)
    return Status::FromErrno("cannot drop capabilities", errno);
  return {};
}

Status BecomeUser(uid_t uid, gid_t gid, std::span<const gid_t> groups) {
  const std::string what = "cannot become user " + std::to_string(uid);
  int parent_death_signal = 0;  // Linux forgets it together with the user
  prctl(PR_GET_PDEATHSIG, &parent_death_signal, 0, 0, 0);
  if (setgroups(groups.size(), groups.data()) != 0 &&
      (errno != EPERM || !IsUser(uid, gid)))
    return Status::FromErrno(what, errno);
  if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
    return Status::FromErrno(what, errno);
  if (!IsUser(uid, gid) || (uid != 0 && setresuid(0, 0, 0) == 0))
    return Status(StatusCode::kUnavailable, what + ": the way back is open");
  prctl(PR_SET_PDEATHSIG, parent_death_signal, 0, 0, 0);
  return {};
}

Status ForbidNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Status::FromErrno("cannot forbid new privileges", errno);
  return {};
}

Status MakeUndumpable() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return Status::FromErrno("cannot forbid core dumps", errno);
  return {};
}

void CloseAllBut(std::span<const int> kept) {
  std::vector<int> sorted(kept.begin(), kept.end());
  std::ranges::sort(sorted);
  unsigned first = 0;
  for (const int fd : sorted) {
    if (fd < 0)
      continue;
    const auto next = static_cast<unsigned>(fd);
    if (next > first)
      CloseRange(first, next - 1);
    first = next + 1;
  }
  CloseRange(first, ~0u);
}

Status BecomeReader(std::span<const int> kept, SystemCalls allowed) {
  CloseAllBut(kept);
  const bool is_root = geteuid() == 0;
  const bool becomes_nobody = is_root && CanBecomeNobody();
  HPD_TRY(DropCapabilities(
      becomes_nobody ? CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_SETGID) : 0));
  if (becomes_nobody)
    HPD_TRY(BecomeUser(kNobody, kNobody, {}));
  HPD_TRY(DropCapabilities(0));
  HPD_TRY(MakeUndumpable());
  Status status = RestrictSystemCalls(allowed);
  return status.code() == StatusCode::kUnavailable && !is_root ? Status() : status;
}

}  // namespace heapprofd
