#include "attach/program_start.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "attach/borrowed_thread.h"
#include "attach/registers.h"
#include "unwind/elf_functions.h"
#include "unwind/module.h"

namespace heapprofd {
namespace {

constexpr std::string_view kDebugState = "_dl_debug_state";  // called at each change
constexpr std::string_view kDebug = "_r_debug";
constexpr uint64_t kMapOffset = 8;     // of r_map in struct r_debug (<link.h>)
constexpr uint64_t kStateOffset = 24;  // of r_state
constexpr int kConsistent = 0;         // RT_CONSISTENT

struct Loader {
  uint64_t debug_state = 0;  // address of the function
  uint64_t debug = 0;        // of the structure; 0: the function is called only when all
                             // is loaded (musl)
};

bool IsWanted(std::string_view name) {
  return name == kDebugState || name == kDebug;
}

// Address at which the kernel has mapped the loader; 0: the program has none.
uint64_t LoaderBase(pid_t pid) {
  const std::string vector = ReadProcFile(ProcPath(pid, "auxv"), 4096);
  for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= vector.size();
       at += sizeof(Elf64_auxv_t)) {
    Elf64_auxv_t entry;
    memcpy(&entry, vector.data() + at, sizeof(entry));
    if (entry.a_type == AT_BASE)
      return entry.a_un.a_val;
  }
  return 0;
}

Result<Loader> FindLoader(const RemoteProcess& process, uint64_t base) {
  const std::vector<MapEntry> maps = process.Maps();
  const auto entry = std::find_if(maps.begin(), maps.end(), [base](const MapEntry& map) {
    return map.start == base && map.inode != 0;
  });
  Loader loader;
  if (entry != maps.end()) {
    const ScopedFd fd = OpenMappedFile(process.pid(), *entry).fd;
    const ElfContents contents = ReadElf(fd.get(), IsWanted, /*use_full_table=*/false);
    for (const auto& [name, symbol] : contents.symbols)
      (name == kDebugState ? loader.debug_state : loader.debug) = base + symbol.address;
  }
  if (loader.debug_state == 0)
    return Status(
        StatusCode::kUnavailable,
        "cannot start process " + std::to_string(process.pid()) +
            " under observation: its loader has no _dl_debug_state; attach with "
            "-p once it runs");
  if (entry->path.find("ld-musl") != std::string::npos)
    loader.debug = 0;  // its structure has another layout of states
  return loader;
}

// A breakpoint at an instruction of a thread. It ends with us, at the latest, and stops
// the thread with a signal that does nothing when nobody traces it any more: a debug
// register set by ptrace would live on, and kill the program.
class Breakpoint {
 public:
  Breakpoint(const TracedThread& thread, uint64_t address) : tid_(thread.tid()) {
    const uint64_t blocked = thread.SignalMask().value_or(~uint64_t{0});
    for (const int signal : {SIGURG, SIGWINCH}) {
      if (signal_ == 0 && (blocked >> (signal - 1) & 1) == 0)
        signal_ = signal;
    }
    if (signal_ != 0)
      Open(address);
  }

  bool is_set() const { return event_.valid(); }

  // Whether it is what a stopped thread has stopped for.
  bool IsHit(int signal) const {
    siginfo_t info{};
    return signal == signal_ && ptrace(PTRACE_GETSIGINFO, tid_, 0, &info) == 0 &&
           info.si_code > 0 && info.si_fd == event_.get();
  }

 private:
  void Open(uint64_t address) {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.bp_type = HW_BREAKPOINT_X;
    attributes.bp_addr = address;
    attributes.bp_len = kBreakpointLength;
    attributes.sample_period = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    event_ = ScopedFd(static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, tid_, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    const f_owner_ex owner{.type = F_OWNER_TID, .pid = tid_};
    if (event_.valid() && (fcntl(event_.get(), F_SETOWN_EX, &owner) != 0 ||
                           fcntl(event_.get(), F_SETSIG, signal_) != 0 ||
                           fcntl(event_.get(), F_SETFL, O_ASYNC) != 0))
      event_.reset();
  }

  pid_t tid_;
  int signal_ = 0;
  ScopedFd event_;
};

bool IsConsistent(const RemoteProcess& process, const Loader& loader) {
  int state = -1;
  return loader.debug == 0 || (process.ReadObject(loader.debug + kStateOffset, &state) &&
                               state == kConsistent);
}

// Whether the loader has done that already.
bool IsLoaded(const RemoteProcess& process, const Loader& loader) {
  uint64_t first = 0;
  return loader.debug != 0 && process.ReadObject(loader.debug + kMapOffset, &first) &&
         first != 0 && IsConsistent(process, loader);
}

// A signal that would end the program, of a kernel that says more than others.
bool IsOurStep(pid_t tid, int signal) {
  siginfo_t info{};
  return kFromBreakpoint == PTRACE_SINGLESTEP && signal == SIGTRAP &&
         ptrace(PTRACE_GETSIGINFO, tid, 0, &info) == 0 && info.si_code == TRAP_TRACE;
}

Status RunToConsistent(const RemoteProcess& process,
                       const Loader& loader,
                       const std::function<bool()>& may_wait,
                       TracedThread* thread) {
  const Breakpoint breakpoint(*thread, loader.debug_state);
  if (!breakpoint.is_set())
    return CannotAttach(process.pid(),
                        std::string("a breakpoint cannot be set at its start (") +
                            strerror(errno) + "); attach with -p once it runs");
  thread->Continue();
  while (may_wait()) {
    int status = 0;
    const TracedThread::Wait outcome = thread->WaitForEvent(may_wait, &status);
    if (outcome == TracedThread::Wait::kGone)
      return SeizeError(process.pid(), ESRCH);
    if (outcome == TracedThread::Wait::kTimedOut)
      break;
    if (status >> 16 == 0 && IsOurStep(thread->tid(), WSTOPSIG(status))) {
      thread->Continue();
    } else if (status >> 16 != 0 || !breakpoint.IsHit(WSTOPSIG(status))) {
      thread->PassOn(status);
    } else if (IsConsistent(process, loader)) {
      thread->NoteStopped();
      return {};
    } else {
      ptrace(kFromBreakpoint, thread->tid(), 0, 0);
    }
  }
  return CannotAttach(process.pid(),
                      "it did not come to an end with loading its libraries in time; "
                      "attach with -p once it runs");
}

}  // namespace

Status RunToStart(const RemoteProcess& process,
                  const std::function<bool()>& may_wait,
                  TracedThread* thread) {
  if (const uint64_t base = LoaderBase(process.pid()); base != 0) {
    HPD_TRY_ASSIGN(const Loader loader, FindLoader(process, base));
    if (!IsLoaded(process, loader))
      HPD_TRY(RunToConsistent(process, loader, may_wait, thread));
  }
  if (process.Threads().size() != 1)  // it was traced too late: see exec_watcher.cc
    return CannotAttach(process.pid(), "it had started already; attach with -p");
  // Out of the exec or the breakpoint, without an instruction of the program.
  thread->Interrupt();
  thread->Continue();
  constexpr uint64_t kStopNs = 500'000'000;
  if (thread->WaitForStop(MonotonicNs() + kStopNs) != TracedThread::Wait::kStopped)
    return LostThread(process.pid(), thread->tid());
  return {};
}

}  // namespace heapprofd
