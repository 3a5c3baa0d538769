#include "attach/borrowed_thread.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <utility>

#include "attach/client_image.h"
#include "attach/code_cave.h"
#include "attach/registers.h"
#include "attach/return_places.h"
#include "attach/stopped_process.h"
#include "attach/thread/exec_rights.h"
#include "attach/thread/interrupted_call.h"
#include "attach/thread/seccomp_filters.h"
#include "attach/thread/stragglers.h"
#include "attach/thread/thread_states.h"
#include "attach/wait_limit.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRunTimeoutNs = 5'000'000'000;  // of our code in a borrowed thread
// Until a thread of ours is put back, whatever has been waited for before.
constexpr uint64_t kTakeBackNs = 1'000'000'000;
constexpr uint64_t kLookNs = 1'000'000;  // after this long we look where it is
constexpr uint64_t kPollNs = 5'000;
constexpr uint64_t kLongestRunNs = 200'000'000;  // on a busy machine, between two looks

// Threads in the order in which they are asked: those last that wait for a signal, which
// must not be kept from it.
std::vector<pid_t> BorrowableThreads(const RemoteProcess& process) {
  std::vector<pid_t> threads = process.Threads();
  constexpr size_t kLookedAt = 64;
  const auto waits_for_signal = [&](pid_t tid) {
    const std::string text = ReadProcFile(
        ProcPath(process.pid(), "task/" + std::to_string(tid) + "/syscall"), 64);
    const long number = strtol(text.c_str(), nullptr, 10);
    return WaitsForSignal(number);
  };
  const auto end =
      threads.begin() + static_cast<ptrdiff_t>(std::min(threads.size(), kLookedAt));
  std::stable_partition(threads.begin(), end,
                        [&](pid_t tid) { return !waits_for_signal(tid); });
  return threads;
}

Status NoThreadStops(pid_t pid) {
  return CannotAttach(pid,
                      "its threads are in an uninterruptible sleep; try again later");
}

// Which threads are taken, and what was seen of those that were not.
struct Search {
  // Also those that our system calls take registers from (VectorState). We put those back,
  // but a thread that goes back by itself, as we have died or get no processor, cannot.
  bool takes_vectors = false;
  bool has_vectors = false;  // one of them has such
  bool is_starved = false;   // one of them has only got no processor
};

bool IsTooPrecious(const TracedThread& thread, Search* search) {
  VectorState vectors;
  if (search->takes_vectors || !ReadVectorState(thread.tid(), &vectors) ||
      !HasVectors(vectors))
    return false;
  search->has_vectors = true;
  return true;
}

// Whether the thread, which has been asked to stop, can run our code. It is let go when
// not.
Status TryToBorrow(const RemoteProcess& process,
                   uint64_t deadline,
                   Search* search,
                   TracedThread* thread) {
  const pid_t pid = process.pid();
  switch (thread->WaitForStop(deadline)) {
    case TracedThread::Wait::kGone:
      return SeizeError(pid, ESRCH);
    case TracedThread::Wait::kTimedOut:
      thread->Abandon();
      return CannotAttach(
          pid, std::string("a thread of it") + kDidNotStop + "; try again later");
    case TracedThread::Wait::kStopped:
      break;
  }
  Status status;
  if (!process.IsSameImage())
    status = LostRace(pid, "it has just become another program");
  else if (!SuspendFilters(thread->tid()) && IsUnderSeccomp(thread->tid()))
    status = SeizeError(pid, EPERM);
  else if (thread->context().IsInRestartableSequence(process))
    status = LostRace(pid, "its threads do not leave a restartable sequence");
  else if (IsTooPrecious(*thread, search))
    status = Status(StatusCode::kTryAgain, "");  // and then it is taken
  if (!status.ok())
    thread->Release();
  return status;
}

// One that cannot stop stays ours until it can, and meanwhile keeps signals from the
// program: those that can be seen to be such are left alone, and not many are tried.
Result<TracedThread> BorrowAny(const RemoteProcess& process, Search* search) {
  const pid_t pid = process.pid();
  constexpr int kMaxTried = 8;
  constexpr uint64_t kPerThreadNs = 100'000'000;
  constexpr uint64_t kAllNs = 500'000'000;
  const uint64_t deadline = MonotonicNs() + kAllNs;
  Status status = SeizeError(pid, ESRCH);
  int tried = 0;
  for (bool does_none_stop = true; does_none_stop && MonotonicNs() < deadline;) {
    does_none_stop = false;
    for (const pid_t tid : BorrowableThreads(process)) {
      if (tried == kMaxTried || MonotonicNs() > deadline)
        return status;
      if (IsUninterruptible(tid)) {
        status = NoThreadStops(pid);
        does_none_stop = tried == 0;
        continue;
      }
      TracedThread thread(tid);
      if (!thread.Seize(IsUnderSeccomp(tid))) {
        if (errno != ESRCH)
          status = SeizeError(pid, errno);
        continue;  // the leader has ended, others may live
      }
      ++tried;
      Status tried_status = TryToBorrow(
          process, std::min(MonotonicNs() + kPerThreadNs, deadline), search, &thread);
      if (tried_status.ok())
        return thread;
      search->is_starved |=
          tried_status.code() == StatusCode::kUnavailable && IsReady(tid);
      if (tried_status.code() != StatusCode::kNotFound)
        status = std::move(tried_status);
    }
    SleepNs(kLookNs);
  }
  return status;
}

}  // namespace

// On a busy machine a thread stops as soon as it would have run: it may take its time.
Result<TracedThread> BorrowThread(const RemoteProcess& process) {
  constexpr uint64_t kStarvedNs = 2'000'000'000;
  const uint64_t last = WaitUntil(kStarvedNs);
  Search search;
  while (true) {
    if (!AwaitNoExec(process))
      return IsInExecNow(process.pid());
    search.is_starved = false;
    Result<TracedThread> thread = BorrowAny(process, &search);
    ReleaseStragglers();
    if (!thread.ok() && search.has_vectors && !search.takes_vectors)
      search.takes_vectors = true;
    else if (thread.ok() || !search.is_starved || MonotonicNs() >= last)
      return thread;
  }
}

uint64_t MainThreadPointer(const RemoteProcess& process) {
  const pid_t pid = process.pid();
  constexpr uint64_t kPatienceNs = 20'000'000;
  constexpr uint64_t kStarvedNs = 500'000'000;
  TracedThread leader(pid);
  if (!AwaitNoExec(process) || IsUninterruptible(pid) ||
      !leader.Seize(/*is_filtered=*/false))
    return 0;
  const uint64_t last = WaitUntil(kStarvedNs);
  TracedThread::Wait outcome = leader.WaitForStop(MonotonicNs() + kPatienceNs);
  while (outcome == TracedThread::Wait::kTimedOut && IsReady(pid) && MonotonicNs() < last)
    outcome = leader.WaitForStop(MonotonicNs() + kPatienceNs);
  if (outcome != TracedThread::Wait::kStopped) {
    leader.Abandon();
    return 0;
  }
  const uint64_t thread_pointer = ThreadPointerOf(pid, leader.context().registers());
  leader.Release();
  return thread_pointer;
}

namespace {

// Where a thread was.
struct Place {
  user_regs_struct registers;
  uint64_t signal_mask;
  VectorState vectors;
};

Result<Place> PlaceOf(const RemoteProcess& process, const TracedThread& thread) {
  const std::optional<uint64_t> mask = thread.context().SignalMask();
  Place place{.registers = thread.context().registers(),
              .signal_mask = mask.value_or(0),
              .vectors = {}};
  if (!mask || !ReadVectorState(thread.tid(), &place.vectors))
    return SeizeError(process.pid(), ESRCH);
  return place;
}

// Lets the stopped thread go on at `address`, with all signals blocked. In this order:
// whatever of it is not reached, the thread is healthy.
Status LeadTo(const RemoteProcess& process,
              uint64_t address,
              uint64_t stack,
              TracedThread* thread) {
  const ThreadContext& context = thread->context();
  return context.SetRegisters(LedTo(context.registers(), address, stack)) &&
                 context.SetSignalMask(~uint64_t{0}) && thread->Continue()
             ? Status()
             : SeizeError(process.pid(), ESRCH);
}

bool IsOnStack(const TracedThread& thread, const OurCode& code) {
  const uint64_t sp = StackPointer(thread.context().registers());
  return code.stack_begin != 0 && sp >= code.stack_begin && sp <= code.stack_end;
}

// False: it has gone.
bool LetRun(uint64_t time_ns, TracedThread* thread) {
  for (const uint64_t end_ns = MonotonicNs() + time_ns; MonotonicNs() < end_ns;) {
    if (!thread->Serve())
      return false;
    SleepNs(kPollNs);
  }
  return true;
}

// Puts the thread back where it was. It has done its work in `code`, or is about to have.
// Not by its own means as long as we live: on its way a signal handler could take it out
// of our code for any time, to return when the next session has changed where that leads.
// `mapped_by`, if given: what MappedBy says of it then.
Status TakeBack(const RemoteProcess& process,
                const OurCode& code,
                const Place& place,
                TracedThread* thread,
                uint64_t* mapped_by = nullptr) {
  const pid_t pid = process.pid();
  const uint64_t deadline =
      std::max(WaitUntil(kRunTimeoutNs), MonotonicNs() + kTakeBackNs);
  // Longer each time: one that is asked to stop again before it had a processor does not
  // get any further.
  for (uint64_t run_ns = kPollNs; MonotonicNs() < deadline;
       run_ns = std::min(2 * run_ns, kLongestRunNs)) {
    thread->Interrupt();
    if (thread->WaitForStop(deadline) != TracedThread::Wait::kStopped)
      return LostThread(pid, thread->tid());
    const uint64_t ip = ProgramCounter(thread->context().registers());
    if (ip >= code.wait_begin && ip < code.end) {
      if (mapped_by != nullptr)
        *mapped_by = MappedBy(thread->context().registers());
      // All of it, whatever fails: the thread is not to stay in our code.
      const bool has_vectors = WriteVectorState(thread->tid(), place.vectors);
      const bool has_registers = thread->context().SetRegisters(place.registers);
      if (!thread->context().SetSignalMask(place.signal_mask) || !has_registers ||
          !has_vectors)
        return SeizeError(pid, ESRCH);
      thread->registers() = place.registers;
      return {};
    }
    if (!IsAnyIn({*thread}, code))
      break;
    thread->Continue();
    if (!LetRun(run_ns, thread))
      return LostThread(pid, thread->tid());
  }
  return LostRace(pid,
                  "a thread of it could not wait for its profiler any longer (too much "
                  "runs on this machine)");
}

bool IsImageMapped(const RemoteProcess& process, uint64_t base) {
  const std::vector<MapEntry> maps = process.Maps();
  return std::any_of(maps.begin(), maps.end(), [base](const MapEntry& entry) {
    return entry.start == base && entry.end == base + ClientHeader().code_size &&
           entry.executable;
  });
}

// Until there is memory at `base`, or for so long that it may have failed.
bool AwaitMemory(const RemoteProcess& process, uint64_t base, TracedThread* thread) {
  const uint64_t look_at = MonotonicNs() + kLookNs;
  uint64_t word = 0;
  while (MonotonicNs() < look_at && !process.ReadObject(base, &word)) {
    if (!thread->Serve())
      return false;
    SleepNs(kPollNs);
  }
  return true;
}

// Until the setup has ended, well or not. `take_files`: false when they are not to be
// used; the setup ends soon without them, and closes its descriptors.
Result<SetupResult> AwaitSetup(
    const RemoteProcess& process,
    uint64_t state,
    TracedThread* thread,
    const std::function<bool(const SetupResult&)>& take_files) {
  // Whoever has been led there gets the time that going back takes, at least.
  const uint64_t deadline =
      std::max(WaitUntil(kRunTimeoutNs), MonotonicNs() + kTakeBackNs);
  bool was_asked = false;
  while (MonotonicNs() < deadline) {
    SetupResult result{};
    if (!thread->Serve() ||
        !process.ReadObject(state + offsetof(AttachState, result), &result))
      return SeizeError(process.pid(), ESRCH);
    const auto status = static_cast<SetupStatus>(result.status);
    if (status == SetupStatus::kDone || status == SetupStatus::kFailed)
      return result;
    if (status == SetupStatus::kFilesReady && !was_asked) {
      was_asked = true;
      if (take_files(result))
        process.WriteObject(state + offsetof(AttachState, request.go), uint32_t{1});
    }
    SleepNs(kPollNs);
  }
  return LostRace(process.pid(), "a thread of it did not come to the end of the setup");
}

}  // namespace

bool IsAnyIn(const std::vector<TracedThread>& threads, const OurCode& code) {
  const bool is_on_stack = std::any_of(
      threads.begin(), threads.end(),
      [&code](const TracedThread& thread) { return IsOnStack(thread, code); });
  std::vector<std::pair<uint64_t, uint64_t>> ranges = {{code.begin, code.end}};
  if (code.stack_begin != 0)  // a handler that interrupted what runs there
    ranges.emplace_back(code.stack_begin, code.stack_end);
  return is_on_stack || IsAnyInside(threads, ranges);
}

// What lies on a stack may be only a rest of what was there, and nobody knows who has left
// a thread in our code: that is all that can be said of it.
Status AwaitStrayThread(const RemoteProcess& process, const OurCode& code) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;  // longer than the setup may take
  constexpr uint64_t kRetryNs = 5'000'000;
  const uint64_t deadline = WaitUntil(kPatienceNs);
  do {
    {
      HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process));
      if (!IsAnyIn(stopped.threads(), code))
        return {};
    }
    SleepNs(kRetryNs);
  } while (MonotonicNs() < deadline);
  return LostRace(process.pid(),
                  "a thread of it may still be in what an earlier attempt to attach has "
                  "begun; if the process is stopped, let it go on");
}

Status MapImage(const RemoteProcess& process,
                const CodeCave& cave,
                uint64_t base,
                uint64_t hold_ticks,
                TracedThread* thread) {
  const pid_t pid = process.pid();
  const AttachHeader& header = ClientHeader();
  HPD_TRY_ASSIGN(const Place place, PlaceOf(process, *thread));
  const std::vector<uint8_t> stub = MakeStub({.base = base,
                                              .total_size = header.total_size,
                                              .code_size = header.code_size,
                                              .hold_ticks = hold_ticks,
                                              .signal_mask = place.signal_mask},
                                             thread->context().ResumeState());
  const OurCode code = {.begin = cave.address,
                        .end = cave.address + stub.size(),
                        .wait_begin = cave.address + StubWaitOffset()};
  if (!process.Write(code.begin, stub.data(), stub.size()))
    return CannotWriteCode(pid);
  // Where it ends early, the next attempt finds the stub and heals the cave.
  HPD_TRY(LeadTo(process, code.begin, StackPointer(place.registers), thread));
  if (!AwaitMemory(process, base, thread))
    return SeizeError(pid, ESRCH);
  uint64_t mapped_by = 0;
  HPD_TRY(TakeBack(process, code, place, thread, &mapped_by));
  process.Write(code.begin, cave.contents.data(), cave.contents.size());
  if (IsImageMapped(process, base))
    return {};
  return MemoryRefused(pid, static_cast<int>(-mapped_by), header.total_size);
}

Result<SetupResult> RunSetup(
    const RemoteProcess& process,
    uint64_t base,
    const OurCode& setup,
    TracedThread* thread,
    const std::function<Status(const SetupResult&)>& take_files) {
  const uint64_t state = base + ClientHeader().state;
  HPD_TRY_ASSIGN(const Place place, PlaceOf(process, *thread));
  const ResumeRegisters resume = thread->context().ResumeState();
  if (!process.WriteObject(state + offsetof(AttachState, resume), resume) ||
      !process.WriteObject(state + offsetof(AttachState, request.signal_mask),
                           place.signal_mask))
    return CannotAttach(process.pid(),
                        "the memory mapped for the profiler cannot be written to");
  HPD_TRY(LeadTo(process, setup.begin, setup.stack_end, thread));
  Status taken;
  const auto take = [&taken, &take_files](const SetupResult& files) {
    taken = take_files(files);
    return taken.ok();
  };
  HPD_TRY_ASSIGN(const SetupResult result, AwaitSetup(process, state, thread, take));
  HPD_TRY(TakeBack(process, setup, place, thread));
  HPD_TRY(std::move(taken));
  return result;
}

}  // namespace heapprofd
