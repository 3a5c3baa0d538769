#include "attach/gate/gate_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "attach/gate/gate.h"
#include "attach/gate/mount_list.h"
#include "attach/remote_process.h"
#include "attach/stopped_process.h"
#include "base/clock.h"
#include "sandbox/sandbox.h"
#include "sandbox/system_call_names.h"

namespace heapprofd {
namespace {

constexpr int kLookMs = 100;
constexpr uint64_t kDeadNs = 400'000'000;  // without a sign of life
constexpr uint64_t kRearmNs = 50'000'000;  // not to set it at every event

// A timer of the kernel's that kills this process when it is not wound up again in time:
// SIGKILL ends it also while it is stopped, traced or frozen, and waits for a file. The
// kernel then gives all permissions. A second process that watched this one could be
// stopped with it.
class DeadMansSwitch {
 public:
  bool Create() {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    return timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  }

  void Wind() {
    const uint64_t now = MonotonicNs();
    if (now < wound_ns_ + kRearmNs)
      return;
    Set(kDeadNs);
    wound_ns_ = now;
  }

  void Rest() {
    if (wound_ns_ != 0)
      Set(0);
    wound_ns_ = 0;
  }

 private:
  void Set(uint64_t ns) {
    const itimerspec time{.it_interval = {},
                          .it_value = {.tv_sec = 0, .tv_nsec = static_cast<long>(ns)}};
    timer_settime(timer_, 0, &time, nullptr);
  }

  timer_t timer_{};
  uint64_t wound_ns_ = 0;  // 0: it does not run
};

// Neither what is meant for our owner's group of processes ends it, nor what somebody
// sends to all of his.
void BlockSignals() {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

// A core file would be written while all execs wait, and needs one itself when a program
// is to take it.
void BeUndumpable() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  const Status ignored = MakeUndumpable();
  static_cast<void>(ignored);
}

// An event without room for its descriptor is an exec that the kernel refuses.
void MakeRoomForFiles() {
  constexpr rlim_t kFiles = 4096;
  const rlimit enough{.rlim_cur = kFiles, .rlim_max = kFiles};
  setrlimit(RLIMIT_NOFILE, &enough);
}

// Nobody waits until a page has been read in again.
void LockMemory() {
  const rlimit unlimited{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0)  // or new memory would be refused
    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

// Of cgroups of version 1, where not even SIGKILL ends who is frozen: to the root of the
// hierarchy, which cannot be.
void LeaveFreezer() {
  for (const Mount& mount : ParseMountInfo(ReadProcFile("/proc/self/mountinfo"))) {
    if (mount.type != "cgroup" || !mount.options.ends_with(",freezer"))
      continue;
    const ScopedFd file(
        open((mount.point + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    const ssize_t ignored = file.valid() ? write(file.get(), "0", 1) : 0;
    static_cast<void>(ignored);
  }
}

// What is needed: marks and the last few files of the machine; directories of others;
// their credentials, where /proc hides them. Old kernels have no system call filters.
bool KeepRightsToWatch() {
  constexpr std::array<uint32_t, 6> kCalls = {SYS_openat,        kReadLinkCall,
                                              SYS_sendmsg,       SYS_recvmsg,
                                              SYS_fanotify_mark, SYS_timer_settime};
  const uint64_t kept = CapabilityBit(CAP_SYS_ADMIN) |
                        CapabilityBit(CAP_DAC_READ_SEARCH) |
                        CapabilityBit(CAP_SYS_PTRACE);
  if (!DropCapabilities(kept).ok() || !ForbidNewPrivileges().ok())
    return false;
  const Status status = RestrictSystemCalls(SystemCalls::kUseWhatIsOpen, kCalls);
  return status.ok() || status.code() == StatusCode::kUnavailable;
}

bool Mark(int group, const char* path) {
  const unsigned action = path != nullptr ? FAN_MARK_ADD : FAN_MARK_FLUSH;
  return fanotify_mark(group, action | FAN_MARK_FILESYSTEM,
                       path != nullptr ? FAN_OPEN_EXEC_PERM : 0, AT_FDCWD, path) == 0;
}

}  // namespace

void RunGate(ScopedFd control) {
  prctl(PR_SET_NAME, "heapprofd-gate");
  BlockSignals();
  BeUndumpable();
  MakeRoomForFiles();
  const Urgency urgency;  // every program that is started waits for this process
  LeaveFreezer();
  LockMemory();
  // O_NONBLOCK: whoever has a lease on a file cannot make us wait for him.
  ScopedFd group(
      fanotify_init(FAN_CLASS_PRE_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID,
                    O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NONBLOCK));
  DeadMansSwitch dead_mans_switch;
  int error = 0;
  if (!group.valid() || !dead_mans_switch.Create())
    error = errno;
  else if (!KeepRightsToWatch())
    error = EPERM;
  const GateReply started{.error = error};
  if (send(control.get(), &started, sizeof(started), MSG_NOSIGNAL) < 0 || error != 0)
    return;
  const auto mark = [events = group.get()](const char* path) {
    return Mark(events, path);
  };
  Gate gate(std::move(control), std::move(group), mark);
  do {
    if (gate.is_watching())
      dead_mans_switch.Wind();
    else
      dead_mans_switch.Rest();
  } while (gate.Turn(gate.is_watching() ? kLookMs : -1));
  _exit(0);  // being less urgent again would take one more system call
}

}  // namespace heapprofd
