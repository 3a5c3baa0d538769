#include "attach/start/program_start.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attach/refusals.h"
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
  if (maps.empty())
    return EndedAtStart(process.pid());
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

Status RunToConsistent(const RemoteProcess& process,
                       const Loader& loader,
                       TrapKind kind,
                       const std::function<bool()>& may_wait,
                       TracedThread* thread) {
  HPD_TRY_ASSIGN(const std::unique_ptr<StartTrap> trap,
                 SetStartTrap(kind, process, loader.debug_state, thread));
  thread->Continue();
  while (may_wait()) {
    int status = 0;
    const TracedThread::Wait outcome = thread->WaitForEvent(may_wait, &status);
    if (outcome == TracedThread::Wait::kGone)
      return EndedAtStart(process.pid());
    if (outcome == TracedThread::Wait::kTimedOut)
      break;
    const StartTrap::Stop stop = trap->Look(status);
    if (stop == StartTrap::Stop::kForeign) {
      thread->PassOn(status);
    } else if (stop == StartTrap::Stop::kReached && IsConsistent(process, loader)) {
      trap->Finish();
      return {};
    } else {
      trap->GoOn(stop);
    }
  }
  return CannotAttach(process.pid(),
                      "it did not come to an end with loading its libraries in time; "
                      "attach with -p once it runs");
}

}  // namespace

Status RunToStart(const RemoteProcess& process,
                  const std::function<bool()>& may_wait,
                  TracedThread* thread,
                  TrapKind kind) {
  if (const uint64_t base = LoaderBase(process.pid()); base != 0) {
    HPD_TRY_ASSIGN(const Loader loader, FindLoader(process, base));
    if (!IsLoaded(process, loader))
      HPD_TRY(RunToConsistent(process, loader, kind, may_wait, thread));
  }
  const size_t threads = process.Threads().size();
  if (threads == 0)
    return EndedAtStart(process.pid());
  if (threads != 1)  // it was traced too late: see exec_watcher.cc
    return CannotAttach(process.pid(), "it had started already; attach with -p");
  // Out of the exec or the trap, without an instruction of the program.
  thread->Interrupt();
  thread->Continue();
  switch (thread->WaitForStop(MonotonicNs() + kStopNs)) {
    case TracedThread::Wait::kStopped:
      return {};
    case TracedThread::Wait::kGone:
      return EndedAtStart(process.pid());
    case TracedThread::Wait::kTimedOut:
      break;
  }
  return LostThread(process.pid(), thread->tid());
}

}  // namespace heapprofd
