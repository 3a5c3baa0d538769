#include "attach/attached_process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "attach/borrowed_thread.h"
#include "attach/client_image.h"
#include "attach/prologue.h"
#include "attach/registers.h"
#include "attach/return_places.h"
#include "attach/shared_files.h"
#include "attach/stopped_process.h"
#include "attach/wait_limit.h"
#include "base/random_seed.h"
#include "rt/machine.h"
#include "wire/shared_memory.h"

namespace heapprofd {
namespace {

constexpr uint64_t kWaitForUsNs = 200'000'000;  // the setup waits for us at most
constexpr uint64_t kHoldNs = 500'000'000;       // so does a thread in our code
constexpr uint64_t kStaleSeconds = 3;           // then the client takes us for lost

// Time stamp counter ticks per second, measured once.
uint64_t TicksPerSecond() {
  static const uint64_t ticks = [] {
    const uint64_t start_ns = MonotonicNs();
    const uint64_t start = rt::ReadTsc();
    SleepNs(2'000'000);
    const uint64_t elapsed_ns = std::max<uint64_t>(MonotonicNs() - start_ns, 1);
    return (rt::ReadTsc() - start) * 1000 / elapsed_ns * 1'000'000;
  }();
  return ticks;
}

Status DoesNotLeave(pid_t pid) {
  return CannotAttach(pid,
                      "one of its threads does not leave the first instructions of its "
                      "allocator, and cannot be led out of them; try again");
}

// Where the kernel put what the process was started with, above the first thread's frames;
// 0: unknown.
uint64_t StartOfStack(pid_t pid) {
  constexpr int kStartStack = 28;
  const std::string stat = ReadProcFile(ProcPath(pid, "stat"), kMaxStatText);
  return strtoull(StatFields(stat, kStartStack, kStartStack).c_str(), nullptr, 10);
}

}  // namespace

AttachedProcess::~AttachedProcess() {
  if (is_hooked_)
    static_cast<void>(TakeHooksOut());
  process_.Unlock();
}

Result<std::unique_ptr<AttachedProcess>> AttachedProcess::Place(pid_t pid,
                                                                const Options& options,
                                                                AllocatorFinder* finder,
                                                                TracedThread* held) {
  HPD_TRY_ASSIGN(RemoteProcess process, RemoteProcess::Open(pid));
  if (!process.Lock())
    return LostRace(pid, "another heap_profile is attaching to it");
  std::unique_ptr<AttachedProcess> attached(new AttachedProcess(std::move(process)));
  const Status status = attached->PlaceClient(options, finder, held);
  if (status.ok())
    return attached;
  // What is missing then is the process.
  if (!attached->process_.IsSameImage())
    return LostRace(pid, "it has just ended or become another program");
  return status;
}

Status AttachedProcess::PlaceClient(const Options& options,
                                    AllocatorFinder* finder,
                                    TracedThread* held) {
  const std::vector<MapEntry> maps = process_.Maps();
  can_open_mappings_ = CanOpenMappings(process_.view(), maps);
  if (FindCountingChild(maps, options))
    return PlaceInChild(maps, options);
  const ProcessCode code = finder->Find(process_, maps);
  if (code.allocators.empty())
    return code.has_loader && code.unopened.empty()
               ? LostRace(pid(), "its libraries are not loaded")
               : CannotAttach(pid(), NoAllocatorReason(code));
  HPD_TRY(UndoLeftovers(maps));
  HPD_TRY(ChoosePlace(maps, code));
  request_ = MakeRequest(options, code);
  HPD_TRY(PlaceImage(maps, held));
  HPD_TRY(WriteGates());
  report_.allocators = plan_.allocators;
  report_.unpatched = plan_.unpatched;
  for (const std::string& path : code.unopened)
    report_.unpatched.push_back("what " + path +
                                " defines: it could not be opened in time");
  return {};
}

Status AttachedProcess::ChoosePlace(const std::vector<MapEntry>& maps,
                                    const ProcessCode& code) {
  const AttachHeader& header = ClientHeader();
  state_offset_ = header.state;
  wiped_offset_ = header.wiped;
  const uint64_t near = code.allocators.front().functions.front().address;
  if (!is_placed_) {
    const std::optional<uint64_t> gap = FindGap(maps, near, header.total_size);
    if (!gap)
      return CannotAttach(pid(), "there is no free memory near its allocator");
    base_ = *gap;
    plan_.state = AttachState{};
  }
  std::vector<MapEntry> occupied = maps;
  if (!is_placed_) {
    MapEntry& image = occupied.emplace_back();
    image.start = base_;
    image.end = base_ + header.total_size;
    std::sort(occupied.begin(), occupied.end(),
              [](const MapEntry& a, const MapEntry& b) { return a.start < b.start; });
  }
  Result<PatchPlan> plan = MakePatchPlan(process_, occupied, code, base_, plan_.state);
  if (!plan.ok())
    return CannotAttach(pid(), plan.status().message());
  plan_ = std::move(plan).value();
  return {};
}

// What does not depend on the process's code.
void AttachedProcess::FillRequest(const Options& options, SetupRequest* request) const {
  request->ring_size = options.ring_size;
  request->seed = RandomSeed();
  request->wait_ticks =
      can_open_mappings_ && MayGrowFiles(pid(), kRingOffset + options.ring_size)
          ? 0
          : TicksPerSecond() / 1000 * (kWaitForUsNs / 1'000'000);
  request->go = 0;
  request->hold_ticks = TicksPerSecond() / 1000 * (kHoldNs / 1'000'000);
  request->stale_ticks = TicksPerSecond() * kStaleSeconds;
  request->pid = static_cast<uint32_t>(InnerId(pid()));
  request->children = options.children;
}

SetupRequest AttachedProcess::MakeRequest(const Options& options,
                                          const ProcessCode& code) const {
  struct {
    uint32_t bits;
    uint32_t count;
    uint32_t offset;
  } thread_id_field{};

  SetupRequest request{};
  FillRequest(options, &request);
  for (size_t i = 0; i < plan_.new_islands.size(); ++i)
    request.islands[i] = plan_.new_islands[i];
  if (code.libc.stack_end == 0)
    request.stack_end = StartOfStack(pid());
  else if (!process_.ReadObject(code.libc.stack_end, &request.stack_end) ||
           request.stack_end == 0)
    request.stack_end_at = code.libc.stack_end;
  if (code.libc.thread_id_field != 0 && code.libc.thread_block_size != 0 &&
      process_.ReadObject(code.libc.thread_id_field, &thread_id_field) &&
      process_.ReadObject(code.libc.thread_block_size, &request.thread_block_size))
    request.tid_offset = thread_id_field.offset;
  return request;
}

// Its image is a copy of the parent's, with hooks that count.
Status AttachedProcess::PlaceInChild(const std::vector<MapEntry>& maps,
                                     const Options& options) {
  const std::string seccomp =
      StatusField(ReadProcFile(ProcPath(pid(), "status"), 16384), "Seccomp");
  if (rt::kMayTscBeForbidden && atoi(seccomp.c_str()) == 1)  // NOLINT(cert-err34-c)
    return CannotAttach(pid(),
                        "it is under strict seccomp, which ends a process that "
                        "reads the time stamp counter");
  counts_already_ = true;
  state_offset_ = ClientHeader().state;
  wiped_offset_ = ClientHeader().wiped;
  request_ = plan_.state.request;
  FillRequest(options, &request_);
  request_.keeps_counting = 1;
  std::fill(std::begin(request_.islands), std::end(request_.islands), 0);
  plan_.state.result = {};  // the parent's files stay mapped
  return PlaceImage(maps, nullptr);
}

OurCode AttachedProcess::SetupCode() const {
  const AttachHeader& header = ClientHeader();
  return {.begin = base_ + header.setup,
          .end = base_ + header.setup_end,
          .wait_begin = base_ + header.setup_wait,
          .stack_begin = base_ + header.setup_stack,
          .stack_end = base_ + header.setup_stack_end};
}

// The code that is to run, or the room for it, is free for a thread.
Status AttachedProcess::PrepareCode(const std::vector<MapEntry>& maps, CodeCave* cave) {
  if (is_placed_)
    return plan_.state.settled != 0 ? Status() : AwaitStrayThread(process_, SetupCode());
  Result<CodeCave> found = FindCodeCave(process_, maps);
  if (!found.ok())
    return CannotAttach(pid(), found.status().message());
  *cave = std::move(found).value();
  return cave->is_in_use
             ? AwaitStrayThread(process_, {.begin = cave->address,
                                           .end = cave->address + cave->contents.size()})
             : Status();
}

Status AttachedProcess::PlaceImage(const std::vector<MapEntry>& maps,
                                   TracedThread* held) {
  CodeCave cave;
  HPD_TRY(PrepareCode(maps, &cave));
  const uint64_t started = MonotonicNs();
  TracedThread thread(0);
  if (held != nullptr) {
    thread = *held;
  } else {
    HPD_TRY_ASSIGN(thread, BorrowThread(process_));
  }
  request_.main_thread = thread.tid() == pid()
                             ? ThreadPointerOf(thread.tid(), thread.context().registers())
                             : MainThreadPointer(process_);
  // Before a static program has set it up: its first hook looks.
  if (held != nullptr && request_.main_thread == 0 && request_.stack_end != 0)
    request_.stack_end_at = StateAddress() + offsetof(AttachState, request.stack_end);
  Status status = is_placed_
                      ? Status()
                      : MapImage(process_, cave, base_, request_.hold_ticks, &thread);
  if (status.ok())
    status = FillImage();
  if (status.ok())
    status = RunSetupIn(&thread);
  if (held != nullptr)
    *held = thread;
  else
    thread.Release();
  report_.one_thread_stopped_ns = MonotonicNs() - started;
  return status;
}

Status AttachedProcess::RunSetupIn(TracedThread* thread) {
  const auto take_files = [this, thread](const SetupResult& result) -> Status {
    HPD_TRY(OpenFiles(result, thread->tid()));
    if (ftruncate(engine_file_.get(), sizeof(EngineBlock)) != 0 ||
        ftruncate(client_file_.get(),
                  static_cast<off_t>(kRingOffset + request_.ring_size)) != 0)
      return Status::FromErrno("cannot size shared memory", errno);
    return {};
  };
  HPD_TRY_ASSIGN(plan_.state.result,
                 RunSetup(process_, base_, SetupCode(), thread, take_files));
  plan_.state.settled = 1;
  return engine_file_.valid() ? Status() : OpenFiles(plan_.state.result, /*holder=*/0);
}

// Contents of the image and what the setup needs to know. The thread is stopped, and
// nothing leads here yet.
Status AttachedProcess::FillImage() {
  Status failure =
      CannotAttach(pid(), "the memory mapped for the profiler cannot be written to");
  if (!is_placed_ && !process_.Write(base_, ClientImage().data(), ClientImage().size()))
    return failure;
  SetupResult& result = plan_.state.result;
  result.status = static_cast<uint32_t>(SetupStatus::kIdle);
  const uint64_t address = StateAddress();
  plan_.state.settled = 0;
  return process_.WriteObject(address + offsetof(AttachState, settled), uint32_t{0}) &&
                 process_.WriteObject(address + offsetof(AttachState, request),
                                      request_) &&
                 process_.WriteObject(address + offsetof(AttachState, result), result)
             ? Status()
             : failure;
}

// `holder`: the thread that has descriptors of them; 0: they are mapped.
Status AttachedProcess::OpenFiles(const SetupResult& result, pid_t holder) {
  SharedFiles files = holder != 0 ? FilesOfDescriptors(holder, result)
                                  : MappedFiles(process_.view(), result);
  engine_file_ = std::move(files.engine);
  client_file_ = std::move(files.client);
  if (!engine_file_.valid() || !client_file_.valid())
    return Status::FromErrno(
        "cannot open the memory shared with process " + std::to_string(pid()), errno);
  return {};
}

// The records go last: whoever finds one relies on its gate.
Status AttachedProcess::WriteGates() const {
  for (const PlannedGate& gate : plan_.gates) {
    if (!process_.Write(gate.address, gate.code.data(), gate.code.size()))
      return CannotWriteCode(pid());
  }
  constexpr size_t kBegin = offsetof(AttachState, originals);
  const auto* bytes = reinterpret_cast<const std::byte*>(&plan_.state);
  return process_.Write(StateAddress() + kBegin, bytes + kBegin,
                        sizeof(AttachState) - kBegin)
             ? Status()
             : CannotAttach(pid(),
                            "the memory mapped for the profiler cannot be written to");
}

// Whether what lies there is still what we have placed. The lock does not keep out an
// engine that sees another /proc; it places, too, only while it traces a thread.
bool AttachedProcess::IsStillOurs() const {
  uint64_t seed = 0;
  return process_.ReadObject(StateAddress() + offsetof(AttachState, request.seed),
                             &seed) &&
         seed == request_.seed;
}

// False: a thread is where it cannot be led away from.
Result<bool> AttachedProcess::PatchAll(const std::vector<TracedThread>& threads) {
  if (!IsStillOurs())
    return LostRace(pid(), "another heap_profile has attached to it meanwhile");
  std::vector<ReplacedCode> replaced;
  for (const size_t index : plan_.patches) {
    const PatchRecord& record = plan_.state.patches[index];
    std::array<uint8_t, kMaxPatchLength> bytes{};
    if (!process_.Read(record.address, bytes.data(), record.length) ||
        memcmp(bytes.data(), record.original, record.length) != 0)
      return LostRace(pid(), "its code has just changed");
    replaced.push_back(
        {.begin = record.address,
         .end = record.address + record.length,
         .copy = record.gate,
         .instructions = MovedInstructions(std::span(bytes).first(record.length),
                                           record.address, record.gate)});
  }
  if (!LeadOut(process_, threads, replaced))
    return false;
  is_hooked_ = true;
  for (const size_t index : plan_.patches) {
    const PatchRecord& record = plan_.state.patches[index];
    process_.Write(record.address, record.written, record.length);
  }
  process_.WriteObject(base_ + wiped_offset_, uint32_t{1});
  return true;
}

Status AttachedProcess::PutHooksInHeld(const TracedThread& thread) {
  const uint64_t started = MonotonicNs();
  if (!process_.IsSameImage())
    return LostRace(pid(), "it has just become another program");
  const Result<bool> is_in = PatchAll({thread});
  process_.Unlock();  // from here on it is seen that we are there
  report_.threads = 1;
  report_.attach_stopped_ns = MonotonicNs() - started;
  if (!is_in.ok())
    return is_in.status();
  return is_in.value() ? Status() : DoesNotLeave(pid());
}

Status AttachedProcess::PutHooksIn() {
  if (counts_already_) {
    is_hooked_ = true;
    const bool is_told =
        process_.IsSameImage() &&
        process_.WriteObject(base_ + wiped_offset_ + kOwnFilesOffset, kHasOwnFiles);
    process_.Unlock();
    return is_told ? Status() : LostRace(pid(), "it has just ended");
  }
  for (int i = 0; i == 0 || (i < kPatchTries && MayWait()); ++i, PauseBeforeRetry()) {
    HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process_));
    if (!process_.IsSameImage())
      return LostRace(pid(), "it has just become another program");
    HPD_TRY_ASSIGN(const bool is_in, PatchAll(stopped.threads()));
    report_.threads = stopped.threads().size();
    report_.attach_stopped_ns = MonotonicNs() - stopped.stopped_at_ns();
    if (!is_in)
      continue;
    process_.Unlock();  // from here on it is seen that we are there
    return {};
  }
  return DoesNotLeave(pid());
}

}  // namespace heapprofd
