#include "attach/placement.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attach/borrowed_thread.h"
#include "attach/client_image.h"
#include "attach/code_cave.h"
#include "attach/leftovers.h"
#include "attach/refusals.h"
#include "attach/registers.h"
#include "attach/setup_calls.h"
#include "attach/setup_request.h"
#include "rt/machine.h"
#include "wire/shared_memory.h"

namespace heapprofd {
namespace {

class Placement {
 public:
  explicit Placement(const RemoteProcess& process) : process_(process) {}

  Status Place(const AttachOptions& options, AllocatorFinder* finder, TracedThread* held);

  PlacedClient Take() { return std::move(client_); }

 private:
  pid_t pid() const { return process_.pid(); }

  uint64_t StateAddress() const { return client_.base + ClientHeader().state; }

  OurCode SetupCode() const;
  Status PlaceNew(const SetupWishes& wishes, AllocatorFinder* finder, TracedThread* held);
  Status PlaceInChild(const SetupWishes& wishes, LeftImage child);
  Status ChoosePlace(const ProcessCode& code);
  Status PlaceImage(TracedThread* held);
  Status PrepareCode(CodeCave* cave);
  Status FillImage();
  Status RunSetupIn(TracedThread* thread);
  Status WriteGates() const;

  const RemoteProcess& process_;
  std::vector<MapEntry> maps_;
  bool is_there_ = false;  // the image, from an earlier session
  SetupRequest request_{};
  PlacedClient client_;
};

Status Placement::Place(const AttachOptions& options,
                        AllocatorFinder* finder,
                        TracedThread* held) {
  const std::string seccomp =
      StatusField(ReadProcFile(ProcPath(pid(), "status"), 16384), "Seccomp");
  if (rt::kMayTscBeForbidden && atoi(seccomp.c_str()) == 1)  // NOLINT(cert-err34-c)
    return CannotAttach(pid(),
                        "it is under strict seccomp, which ends a process that "
                        "reads the time stamp counter");
  maps_ = process_.Maps();
  const SetupWishes wishes = {.ring_size = options.ring_size,
                              .children = options.children};
  std::optional<LeftImage> child =
      FindCountingChild(process_, maps_, options.recorded, options.ring_size);
  if (!child && options.only_counting_children)
    return Status(StatusCode::kNotFound, "it is no child of a process that is recorded");
  HPD_TRY(child ? PlaceInChild(wishes, std::move(*child))
                : PlaceNew(wishes, finder, held));
  client_.seed = request_.seed;
  return {};
}

Status Placement::PlaceNew(const SetupWishes& wishes,
                           AllocatorFinder* finder,
                           TracedThread* held) {
  if (IsRecordedByPreload(process_, maps_))
    return CannotAttach(pid(), kRecordedAlready);
  const ProcessCode code = finder->Find(process_, maps_);
  if (code.allocators.empty())
    return code.has_loader && code.unopened.empty()
               ? LostRace(pid(), "its libraries are not loaded")
               : CannotAttach(pid(), NoAllocatorReason(code));
  HPD_TRY(ChoosePlace(code));
  request_ = MakeSetupRequest(process_, wishes, code.libc, client_.plan.new_islands);
  HPD_TRY(PlaceImage(held));
  HPD_TRY(WriteGates());
  for (const std::string& path : code.unopened)
    client_.plan.unpatched.push_back("what " + path +
                                     " defines: it could not be opened in time");
  return {};
}

Status Placement::ChoosePlace(const ProcessCode& code) {
  const AttachHeader& header = ClientHeader();
  const uint64_t near = code.allocators.front().functions.front().address;
  HPD_TRY_ASSIGN(const std::optional<LeftImage> left, UndoLeftovers(process_, maps_));
  is_there_ = left.has_value();
  const std::optional<uint64_t> place =
      left ? left->base : FindGap(maps_, near, header.total_size);
  if (!place)
    return CannotAttach(pid(), "there is no free memory near its allocator");
  client_.base = *place;
  std::vector<MapEntry> occupied = maps_;
  if (!is_there_) {
    MapEntry& image = occupied.emplace_back();
    image.start = *place;
    image.end = *place + header.total_size;
    std::sort(occupied.begin(), occupied.end(),
              [](const MapEntry& a, const MapEntry& b) { return a.start < b.start; });
  }
  Result<PatchPlan> plan =
      MakePatchPlan(process_, occupied, code, *place, left ? left->state : AttachState{});
  if (!plan.ok())
    return CannotAttach(pid(), plan.status().message());
  client_.plan = std::move(plan).value();
  return {};
}

// Its image is a copy of the parent's, with hooks that count.
Status Placement::PlaceInChild(const SetupWishes& wishes, LeftImage child) {
  is_there_ = true;
  client_.counts_already = true;
  client_.base = child.base;
  client_.plan.state = child.state;
  client_.plan.patches = std::move(child.patches);
  request_ = MakeChildRequest(process_, wishes, child.state.request);
  client_.plan.state.result = {};  // the parent's files stay mapped
  return PlaceImage(/*held=*/nullptr);
}

OurCode Placement::SetupCode() const {
  const AttachHeader& header = ClientHeader();
  const uint64_t base = client_.base;
  return {.begin = base + header.setup,
          .end = base + header.setup_end,
          .stack_begin = base + header.setup_stack,
          .stack_end = base + header.setup_stack_end};
}

// The code that is to run, or the room for it, is free for a thread.
Status Placement::PrepareCode(CodeCave* cave) {
  if (is_there_)
    return client_.plan.state.settled != 0 ? Status()
                                           : AwaitStrayThread(process_, SetupCode());
  Result<CodeCave> found = FindCodeCave(process_, maps_);
  if (!found.ok())
    return CannotAttach(pid(), found.status().message());
  *cave = std::move(found).value();
  return cave->is_in_use
             ? AwaitStrayThread(process_, {.begin = cave->address,
                                           .end = cave->address + cave->contents.size()})
             : Status();
}

// `held`: the thread to be used; nullptr: one is borrowed.
Status Placement::PlaceImage(TracedThread* held) {
  CodeCave cave;
  HPD_TRY(PrepareCode(&cave));
  const uint64_t started = MonotonicNs();
  TracedThread thread(0);
  if (held != nullptr) {
    if (!held->CanRunOurCalls())
      return SeizeError(pid(), EPERM);
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
  Status status =
      is_there_ ? Status()
                : MapImage(process_, cave, client_.base, request_.hold_ticks, &thread);
  if (status.ok())
    status = FillImage();
  if (status.ok())
    status = RunSetupIn(&thread);
  if (held != nullptr)
    *held = thread;
  else
    thread.Release();
  client_.stopped_ns = MonotonicNs() - started;
  return status;
}

// The files are made, sized and sealed here: the process gets them as they are to be.
Status Placement::RunSetupIn(TracedThread* thread) {
  HPD_TRY_ASSIGN(
      client_.memory,
      SharedMemory::Create(request_.ring_size, SharedMemory::EngineLock::kNotHeld));
  AttachState& state = client_.plan.state;
  HPD_TRY(
      RunSetup(process_, client_.base, *client_.memory, request_, &state.result, thread));
  state.settled = 1;
  return {};
}

// Contents of the image and what the setup needs to know. The thread is stopped, and
// nothing leads here yet.
Status Placement::FillImage() {
  Status failure = CannotWriteMemory(pid());
  if (!is_there_ &&
      !process_.Write(client_.base, ClientImage().data(), ClientImage().size()))
    return failure;
  AttachState& state = client_.plan.state;
  state.result.status = static_cast<uint32_t>(SetupStatus::kIdle);
  state.settled = 0;
  const uint64_t address = StateAddress();
  return process_.WriteObject(address + offsetof(AttachState, settled), uint32_t{0}) &&
                 process_.WriteObject(address + offsetof(AttachState, request),
                                      request_) &&
                 process_.WriteObject(address + offsetof(AttachState, result),
                                      state.result)
             ? Status()
             : failure;
}

// The records go last: whoever finds one relies on its gate.
Status Placement::WriteGates() const {
  for (const PlannedGate& gate : client_.plan.gates) {
    if (!process_.Write(gate.address, gate.code.data(), gate.code.size()))
      return CannotWriteCode(pid());
  }
  constexpr size_t kBegin = offsetof(AttachState, originals);
  const auto* bytes = reinterpret_cast<const std::byte*>(&client_.plan.state);
  return process_.Write(StateAddress() + kBegin, bytes + kBegin,
                        sizeof(AttachState) - kBegin)
             ? Status()
             : CannotWriteMemory(pid());
}

}  // namespace

Result<PlacedClient> PlaceClient(const RemoteProcess& process,
                                 const AttachOptions& options,
                                 AllocatorFinder* finder,
                                 TracedThread* held) {
  Placement placement(process);
  HPD_TRY(placement.Place(options, finder, held));
  return placement.Take();
}

}  // namespace heapprofd
