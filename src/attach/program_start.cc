#include "attach/program_start.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "attach/borrowed_thread.h"
#include "attach/elf_functions.h"
#include "unwind/module.h"

namespace heapprofd {
namespace {

constexpr std::string_view kDebugState = "_dl_debug_state";  // called at each change
constexpr std::string_view kDebug = "_r_debug";
constexpr uint64_t kStateOffset = 24;         // of r_state in struct r_debug (<link.h>)
constexpr int kConsistent = 0;                // RT_CONSISTENT
constexpr uint64_t kLoadNs = 10'000'000'000;  // for all libraries to be loaded

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
    const ScopedFd fd = OpenMappedFile(process.pid(), *entry);
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

bool SetBreakpoint(pid_t tid, uint64_t address) {
  constexpr long kEnableFirst = 1;
  constexpr size_t kRegisters = offsetof(struct user, u_debugreg);
  constexpr size_t kControl = kRegisters + 7 * sizeof(long);
  if (address == 0)
    return ptrace(PTRACE_POKEUSER, tid, kControl, 0) == 0;
  return ptrace(PTRACE_POKEUSER, tid, kRegisters, address) == 0 &&
         ptrace(PTRACE_POKEUSER, tid, kControl, kEnableFirst) == 0;
}

bool IsConsistent(const RemoteProcess& process, const Loader& loader) {
  int state = -1;
  return loader.debug == 0 || (process.ReadObject(loader.debug + kStateOffset, &state) &&
                               state == kConsistent);
}

// Of a thread that runs: what it does in the end is its own affair.
void TakeBreakpointAway(TracedThread* thread) {
  thread->Interrupt();
  if (thread->WaitForStop(MonotonicNs() + kStopTimeoutNs) == TracedThread::Wait::kStopped)
    SetBreakpoint(thread->tid(), 0);
}

Status RunToConsistent(const RemoteProcess& process,
                       const Loader& loader,
                       TracedThread* thread) {
  Status gone = SeizeError(process.pid(), ESRCH);
  if (!SetBreakpoint(thread->tid(), loader.debug_state))
    return Status(StatusCode::kUnavailable,
                  "cannot set a hardware breakpoint in process " +
                      std::to_string(process.pid()) + "; attach with -p once it runs");
  thread->Continue();
  for (const uint64_t deadline = MonotonicNs() + kLoadNs; MonotonicNs() < deadline;) {
    int status = 0;
    const pid_t waited = waitpid(thread->tid(), &status, __WALL | WNOHANG);
    if (waited < 0 || (waited > 0 && !WIFSTOPPED(status)))
      return gone;
    if (waited == 0) {
      SleepNs(20'000);
      continue;
    }
    int signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, thread->tid(), 0, &registers);
    if (signal == SIGTRAP && registers.rip == loader.debug_state) {
      signal = 0;
      if (IsConsistent(process, loader)) {
        SetBreakpoint(thread->tid(), 0);
        thread->NoteStopped();
        return {};
      }
    }
    thread->Continue(signal);
  }
  TakeBreakpointAway(thread);
  return Status(StatusCode::kUnavailable,
                "cannot record process " + std::to_string(process.pid()) +
                    " from its start: it does not come to an end with loading its "
                    "libraries; attach with -p once it runs");
}

}  // namespace

Status RunToStart(const RemoteProcess& process, TracedThread* thread) {
  if (const uint64_t base = LoaderBase(process.pid()); base != 0) {
    HPD_TRY_ASSIGN(const Loader loader, FindLoader(process, base));
    HPD_TRY(RunToConsistent(process, loader, thread));
  }
  // Out of the exec or the breakpoint, without an instruction of the program.
  thread->Interrupt();
  thread->Continue();
  if (thread->WaitForStop(MonotonicNs() + kStopTimeoutNs) != TracedThread::Wait::kStopped)
    return LostThread(process.pid(), thread->tid());
  return {};
}

}  // namespace heapprofd
