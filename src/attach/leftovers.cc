#include "attach/leftovers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "attach/allocators.h"
#include "attach/client_image.h"
#include "attach/entry/patched_code.h"
#include "attach/refusals.h"
#include "attach/stopped_process.h"
#include "wire/shared_memory.h"
#include "wire/small_memory.h"

namespace heapprofd {
namespace {

constexpr char kEngineMapping[] = "/memfd:heapprofd-engine";
constexpr uint64_t kHeartbeatNs = 700'000'000;  // an engine that lives beats sooner

// The process may have written anything there.
void Bound(AttachState* state) {
  state->patch_count = std::min<uint32_t>(state->patch_count, kMaxPatches);
  for (PatchRecord& record : state->patches) {
    if (record.length > kMaxPatchLength)
      record.length = 0;  // none
  }
  state->gates_used = std::min<uint64_t>(state->gates_used, UINT32_MAX);
  for (uint64_t& used : state->islands_used)
    used = std::min<uint64_t>(used, kIslandSize);
}

bool ReadState(const RemoteProcess& process,
               const FoundImage& image,
               AttachState* state) {
  if (!process.ReadObject(image.base + image.header.state, state))
    return false;
  Bound(state);
  return true;
}

std::vector<size_t> InstalledPatches(const RemoteProcess& process,
                                     const AttachState& state) {
  std::vector<size_t> installed;
  for (size_t i = 0; i < state.patch_count; ++i) {
    if (IsPatched(process, state.patches[i]))
      installed.push_back(i);
  }
  return installed;
}

// Whether an engine records it. `switch_address`: of the word that switches the hooks on.
bool IsRecorded(const RemoteProcess& process,
                uint64_t switch_address,
                const AttachState& state) {
  const uint64_t beat_address =
      state.result.engine_block + offsetof(EngineBlock, control.heartbeat);
  uint64_t first = 0;
  uint64_t now = 0;
  uint32_t is_on = 0;
  // Of a forked child nobody records, the beat is the parent's.
  const bool is_child = static_cast<pid_t>(state.request.pid) != InnerId(process.pid());
  const bool has_beat = !is_child && process.ReadObject(switch_address, &is_on) &&
                        is_on != 0 && process.ReadObject(beat_address, &first);
  // Of an engine that was killed long ago we need not wait for the next beat.
  const uint64_t started = MonotonicNs();
  const uint64_t last = first != 0 ? first : started;  // 0: it has just begun
  const uint64_t deadline =
      std::clamp(last, started - kHeartbeatNs, started) + kHeartbeatNs;
  while (has_beat && MonotonicNs() < deadline) {
    PauseBeforeRetry();
    if (process.ReadObject(beat_address, &now) && now != first)
      return true;
  }
  return false;
}

// Puts back the entries that a killed engine has left patched.
Status UndoImage(const RemoteProcess& process,
                 uint64_t switch_address,
                 const AttachState& state) {
  const pid_t pid = process.pid();
  if (IsRecorded(process, switch_address, state))
    return CannotAttach(pid, kRecordedAlready);
  HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process));
  if (!process.IsSameImage())
    return LostRace(pid, "it has just become another program");
  process.WriteObject(switch_address, uint32_t{0});
  for (size_t i = 0; i < state.patch_count; ++i) {
    if (IsPatched(process, state.patches[i]))
      TakePatchBack(process, state.patches[i]);
  }
  return {};
}

}  // namespace

Result<std::optional<LeftImage>> UndoLeftovers(const RemoteProcess& process,
                                               const std::vector<MapEntry>& maps) {
  std::optional<LeftImage> left;
  for (const FoundImage& image : FindImages(process, maps)) {
    AttachState state;
    if (!ReadState(process, image, &state))
      continue;
    if (!InstalledPatches(process, state).empty())
      HPD_TRY(UndoImage(process, image.base + image.header.wiped, state));
    if (image.is_ours && !left)
      left = LeftImage{.base = image.base, .state = state, .patches = {}};
  }
  return left;
}

bool IsRecordedAlready(const RemoteProcess& process, const std::vector<MapEntry>& maps) {
  for (const FoundImage& image : FindImages(process, maps)) {
    AttachState state;
    if (ReadState(process, image, &state) && !InstalledPatches(process, state).empty() &&
        IsRecorded(process, image.base + image.header.wiped, state))
      return true;
  }
  return IsRecordedByPreload(process, maps);
}

// A session that is over stays mapped; so does that of the parent in a forked child, which
// will ask for its own.
bool IsRecordedByPreload(const RemoteProcess& process,
                         const std::vector<MapEntry>& maps) {
  if (!HasPreloadedClient(maps))
    return false;
  return std::any_of(maps.begin(), maps.end(), [&](const MapEntry& entry) {
    constexpr size_t kActive = offsetof(SessionControl, active);
    constexpr size_t kLock = offsetof(SessionControl, engine_lock);
    uint32_t active = 0;
    uint32_t owner = 0;
    return entry.path == kEngineMapping && entry.offset == 0 &&
           process.ReadObject(entry.start + kActive, &active) && active != 0 &&
           process.ReadObject(entry.start + kLock, &owner) && owner != 0 &&
           (owner & kOwnerDied) == 0;
  });
}

std::optional<LeftImage> FindCountingChild(const RemoteProcess& process,
                                           const std::vector<MapEntry>& maps,
                                           const std::map<uint64_t, pid_t>& recorded,
                                           uint64_t ring_size) {
  for (const FoundImage& image : FindImages(process, maps)) {
    AttachState state;
    if (!image.is_ours || !ReadState(process, image, &state))
      continue;
    const auto parent = recorded.find(state.request.seed);
    if (parent == recorded.end() || parent->second == process.pid() ||
        (state.request.ring_size != ring_size && state.request.ring_size != kSmallRing) ||
        state.request.children != ChildrenMode::kFollowed)
      continue;
    std::vector<size_t> installed = InstalledPatches(process, state);
    if (!installed.empty())
      return LeftImage{
          .base = image.base, .state = state, .patches = std::move(installed)};
  }
  return std::nullopt;
}

Status RestoreProcess(pid_t pid) {
  HPD_TRY_ASSIGN(const RemoteProcess process, RemoteProcess::Open(pid));
  if (!process.Lock())
    return LostRace(pid, "another heap_profile is attaching to it");
  Status status = UndoLeftovers(process, process.Maps()).status();
  process.Unlock();
  return status;
}

}  // namespace heapprofd
