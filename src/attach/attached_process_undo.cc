// Taking hooks out of a process: our own at the end of a session, and those that an
// engine has left that was killed.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "attach/attached_process.h"
#include "attach/borrowed_thread.h"
#include "attach/client_image.h"
#include "attach/stopped_process.h"
#include "attach/wait_limit.h"
#include "wire/shared_memory.h"

namespace heapprofd {
namespace {

constexpr uint64_t kHeartbeatNs = 700'000'000;  // an engine that lives beats sooner

// The process may have written anything there.
void Bound(AttachState* state) {
  state->patch_count = std::min<uint32_t>(state->patch_count, kMaxPatches);
  for (PatchRecord& record : state->patches) {
    if (record.length > kMaxPatchLength)
      record.length = 0;  // none
  }
}

bool IsInstalled(const RemoteProcess& process, const PatchRecord& record) {
  std::array<uint8_t, kMaxPatchLength> bytes{};
  const size_t length = record.length;
  return length > 0 && process.Read(record.address, bytes.data(), length) &&
         memcmp(bytes.data(), record.written, length) == 0 &&
         memcmp(record.original, record.written, length) != 0;
}

}  // namespace

Status AttachedProcess::Restore(pid_t pid) {
  HPD_TRY_ASSIGN(RemoteProcess process, RemoteProcess::Open(pid));
  if (!process.Lock())
    return LostRace(pid, "another heap_profile is attaching to it");
  AttachedProcess attached(std::move(process));
  return attached.UndoLeftovers(attached.process_.Maps());
}

// Images of earlier sessions: puts back the entries that a killed engine has left
// patched.
Status AttachedProcess::UndoLeftovers(const std::vector<MapEntry>& maps) {
  for (const FoundImage& image : FindImages(process_, maps)) {
    AttachState state;
    if (!process_.ReadObject(image.base + image.header.state, &state))
      continue;
    Bound(&state);
    const bool is_patched = std::any_of(
        state.patches, state.patches + state.patch_count,
        [this](const PatchRecord& record) { return IsInstalled(process_, record); });
    if (is_patched)
      HPD_TRY(UndoImage(image.base + image.header.wiped, state));
    if (image.is_ours && base_ == 0) {
      base_ = image.base;
      is_placed_ = true;
      plan_.state = state;
    }
  }
  return {};
}

// A child that a process of this session has forked, with all of its hooks.
bool AttachedProcess::FindCountingChild(const std::vector<MapEntry>& maps,
                                        const Options& options) {
  for (const FoundImage& image : FindImages(process_, maps)) {
    AttachState state;
    if (!image.is_ours || !process_.ReadObject(image.base + image.header.state, &state))
      continue;
    Bound(&state);
    const auto parent = options.recorded.find(state.request.seed);
    if (parent == options.recorded.end() || parent->second == pid() ||
        state.request.ring_size != options.ring_size ||
        state.request.children != ChildrenMode::kFollowed)
      continue;
    plan_ = PatchPlan();
    for (size_t i = 0; i < state.patch_count; ++i) {
      if (IsInstalled(process_, state.patches[i]))
        plan_.patches.push_back(i);
    }
    if (plan_.patches.empty())
      continue;
    plan_.state = state;
    base_ = image.base;
    is_placed_ = true;
    return true;
  }
  return false;
}

// `switch_address`: of the word that switches the hooks on.
Status AttachedProcess::UndoImage(uint64_t switch_address, const AttachState& state) {
  const uint64_t beat_address =
      state.result.engine_block + offsetof(EngineBlock, control.heartbeat);
  uint64_t first = 0;
  uint64_t now = 0;
  uint32_t is_on = 0;
  // Of a forked child nobody records, the beat is the parent's.
  const bool is_child = static_cast<pid_t>(state.request.pid) != InnerId(pid());
  const bool has_beat = !is_child && process_.ReadObject(switch_address, &is_on) &&
                        is_on != 0 && process_.ReadObject(beat_address, &first);
  // Of an engine that was killed long ago we need not wait for the next beat.
  const uint64_t started = MonotonicNs();
  const uint64_t last = first != 0 ? first : started;  // 0: it has just begun
  const uint64_t deadline =
      std::clamp(last, started - kHeartbeatNs, started) + kHeartbeatNs;
  while (has_beat && MonotonicNs() < deadline) {
    PauseBeforeRetry();
    if (process_.ReadObject(beat_address, &now) && now != first)
      return CannotAttach(pid(), "another heap_profile records it; end that one first");
  }
  HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process_));
  if (!process_.IsSameImage())
    return LostRace(pid(), "it has just become another program");
  process_.WriteObject(switch_address, uint32_t{0});
  for (size_t k = 0; k < state.patch_count; ++k) {
    if (IsInstalled(process_, state.patches[k]))
      process_.Write(state.patches[k].address, state.patches[k].original,
                     state.patches[k].length);
  }
  return {};
}

// With all threads stopped. The process may have unloaded a module or put other bytes
// there: only what we wrote is taken back.
Status AttachedProcess::RestoreAll() {
  process_.WriteObject(base_ + wiped_offset_, uint32_t{0});
  size_t foreign = 0;
  for (const size_t index : plan_.patches) {
    const PatchRecord& record = plan_.state.patches[index];
    std::array<uint8_t, kMaxPatchLength> bytes{};
    if (!process_.Read(record.address, bytes.data(), record.length))
      continue;  // unloaded
    if (memcmp(bytes.data(), record.written, record.length) == 0) {
      process_.Write(record.address, record.original, record.length);
      process_.Read(record.address, bytes.data(), record.length);
    }
    foreign += memcmp(bytes.data(), record.original, record.length) != 0 ? 1 : 0;
  }
  is_hooked_ = false;
  if (foreign == 0)
    return {};
  return Status(
      StatusCode::kUnavailable,
      std::to_string(foreign) + " functions of process " + std::to_string(pid()) +
          " were changed by somebody else meanwhile and were left so; our hooks "
          "in them do nothing");
}

// No thread can be inside of a jump; those that were inside of what it replaces have been
// led into the copy, which stays.
Status AttachedProcess::TakeHooksOut() {
  if (!is_hooked_)
    return {};
  Status status;
  for (int i = 0; i == 0 || (i < kPatchTries && MayWait()); ++i, PauseBeforeRetry()) {
    if (!process_.IsSameImage()) {
      is_hooked_ = false;
      return {};
    }
    Result<StoppedProcess> stopped = StoppedProcess::Stop(process_);
    if (!stopped.ok()) {
      status = stopped.status();
      if (status.code() != StatusCode::kUnavailable)
        continue;  // it is ending
      break;
    }
    if (!process_.IsSameImage())
      continue;
    status = RestoreAll();
    report_.detach_stopped_ns = MonotonicNs() - stopped.value().stopped_at_ns();
    return status;
  }
  // The hooks stay, but do nothing; the next session takes them out.
  process_.WriteObject(base_ + wiped_offset_, uint32_t{0});
  is_hooked_ = false;
  return status;
}

}  // namespace heapprofd
