// The system call filter, as classic BPF: one comparison after the other, the frequent
// calls first. A table of numbers is all that a reader of it has to believe.
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "sandbox/sandbox.h"
#include "sandbox/system_call_names.h"

namespace heapprofd {
namespace {

// On open descriptors, memory, time and the process itself.
constexpr std::initializer_list<uint32_t> kAlways = {SYS_pread64,
                                                     SYS_read,
                                                     SYS_write,
                                                     SYS_recvfrom,
                                                     SYS_sendto,
                                                     SYS_munmap,
                                                     SYS_mremap,
                                                     SYS_madvise,
                                                     SYS_brk,
                                                     SYS_futex,
                                                     SYS_close,
                                                     SYS_fstat,
                                                     SYS_lseek,
                                                     SYS_readv,
                                                     SYS_writev,
                                                     SYS_preadv,
                                                     SYS_pwrite64,
                                                     SYS_fcntl,
                                                     SYS_dup,
                                                     SYS_ppoll,
                                                     SYS_clock_gettime,
                                                     SYS_gettimeofday,
                                                     SYS_getrandom,
                                                     SYS_getrusage,
                                                     SYS_rt_sigreturn,
                                                     SYS_rt_sigaction,
                                                     SYS_rt_sigprocmask,
                                                     SYS_sigaltstack,
                                                     SYS_getpid,
                                                     SYS_gettid,
                                                     SYS_getuid,
                                                     SYS_geteuid,
                                                     SYS_getgid,
                                                     SYS_getegid,
                                                     SYS_sched_yield,
                                                     SYS_exit,
                                                     SYS_exit_group,
                                                     SYS_restart_syscall,
                                                     SYS_ftruncate,
                                                     SYS_sched_getaffinity};

constexpr std::initializer_list<uint32_t> kForThreads = {
    SYS_set_robust_list, SYS_rseq,     SYS_clock_nanosleep, SYS_nanosleep,
    SYS_wait4,           SYS_pselect6, SYS_fsync,           SYS_fdatasync};

// Of a terminal: reads and sets its modes, asks for its size. Not TIOCSTI, which types.
constexpr std::initializer_list<uint32_t> kTerminalRequests = {TCGETS, TCSETS, TCSETSW,
                                                               TCSETSF, TIOCGWINSZ};

// Libraries try these and go on without: not a reason to end the process.
constexpr std::initializer_list<uint32_t> kRefused = {
    SYS_openat,     SYS_faccessat, SYS_faccessat2, SYS_statx,
    SYS_readlinkat, SYS_getcwd,    SYS_statfs,     SYS_prctl};

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    Unless(BPF_JEQ, kAuditArchitecture, SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
    If(BPF_JGE, kFirstForeignCall, SECCOMP_RET_KILL_PROCESS);
  }

  void Answer(std::span<const uint32_t> calls, uint32_t answer) {
    for (const uint32_t call : calls)
      If(BPF_JEQ, call, answer);
  }

  // `call` is allowed if the low half of its argument, masked, is one of `values`, else
  // it gets `otherwise`.
  void AllowIf(uint32_t call,
               unsigned argument,
               uint32_t mask,
               std::initializer_list<uint32_t> values,
               uint32_t otherwise = SECCOMP_RET_KILL_PROCESS) {
    Jump(BPF_JEQ, call, 0, static_cast<uint8_t>(3 + 2 * values.size()));
    Load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
    code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    for (const uint32_t value : values)
      If(BPF_JEQ, value, SECCOMP_RET_ALLOW);
    Return(otherwise);
  }

  Status Install() {
    Return(SECCOMP_RET_KILL_PROCESS);
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()),
                             .filter = code_.data()};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &program) == 0)
      return {};
    const Status error = Status::FromErrno("cannot restrict system calls", errno);
    return {StatusCode::kUnavailable, error.message()};
  }

 private:
  void Load(size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }

  void Return(uint32_t answer) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, answer)); }

  void Jump(uint16_t test, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back(
        {static_cast<uint16_t>(BPF_JMP | test | BPF_K), if_true, if_false, value});
  }

  void If(uint16_t test, uint32_t value, uint32_t answer) {
    Jump(test, value, 0, 1);
    Return(answer);
  }

  void Unless(uint16_t test, uint32_t value, uint32_t answer) {
    Jump(test, value, 1, 0);
    Return(answer);
  }

  std::vector<sock_filter> code_;
};

constexpr uint32_t Refusal(uint32_t error) {
  return SECCOMP_RET_ERRNO | error;
}

}  // namespace

Status RestrictSystemCalls(SystemCalls allowed, std::span<const uint32_t> also) {
  HPD_TRY(ForbidNewPrivileges());
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (!also.empty())  // a sanitizer's own calls beside them are not known
    return {};
#endif
  const auto own_pid = static_cast<uint32_t>(getpid());
  Filter filter;
#if defined(__SANITIZE_ADDRESS__)  // asks through a pipe whether memory can be read
  filter.Answer(kOldPipe, SECCOMP_RET_ALLOW);
  filter.Answer(std::array<uint32_t, 1>{SYS_pipe2}, SECCOMP_RET_ALLOW);
#endif
  filter.Answer(kAlways, SECCOMP_RET_ALLOW);
  filter.Answer(kOldAlways, SECCOMP_RET_ALLOW);
  filter.Answer(also, SECCOMP_RET_ALLOW);
  filter.AllowIf(SYS_mmap, 2, PROT_EXEC, {0});
  filter.AllowIf(SYS_mprotect, 2, PROT_EXEC, {0});
  // glibc's fstat is one of these; a path fails as if its file could not be reached.
  filter.AllowIf(SYS_newfstatat, 3, ~0u, {AT_EMPTY_PATH}, Refusal(EACCES));
  filter.AllowIf(SYS_prlimit64, 0, ~0u, {0});     // its own limits
  filter.AllowIf(SYS_tgkill, 0, ~0u, {own_pid});  // abort()
  if (allowed == SystemCalls::kUseWhatIsOpenInThreads) {
    filter.Answer(kForThreads, SECCOMP_RET_ALLOW);
    filter.Answer(kOldForThreads, SECCOMP_RET_ALLOW);
    filter.AllowIf(SYS_clone, 0, CLONE_THREAD, {CLONE_THREAD});
    filter.AllowIf(SYS_ioctl, 1, ~0u, kTerminalRequests, Refusal(ENOTTY));
  }
  if (allowed == SystemCalls::kUseWhatIsOpenAndAsk) {
    filter.Answer(std::array<uint32_t, 1>{SYS_openat}, SECCOMP_RET_TRAP);
    filter.Answer(std::array<uint32_t, 2>{SYS_sendmsg, SYS_recvmsg}, SECCOMP_RET_ALLOW);
  }
  filter.Answer(std::array<uint32_t, 1>{SYS_clone3},
                Refusal(ENOSYS));  // its flags cannot be seen; clone's can
  filter.Answer(kRefused, Refusal(EACCES));
  filter.Answer(kOldRefused, Refusal(EACCES));
  return filter.Install();
}

}  // namespace heapprofd
