// Which bytes of a process change so that its allocators call the client: computed while
// the process runs, from its code as it stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attach/allocators.h"
#include "attach/remote_process.h"
#include "base/status.h"
#include "wire/attached_client.h"

namespace heapprofd {

struct PlannedGate {
  uint64_t address;
  std::vector<uint8_t> code;
};

struct PatchPlan {
  AttachState state{};                  // originals, patches, gates and islands filled in
  std::vector<size_t> patches;          // indexes of the records that this session needs
  std::vector<PlannedGate> gates;       // to be written before
  std::vector<uint64_t> new_islands;    // to be mapped before
  std::vector<std::string> unpatched;   // functions that could not be, and why
  std::vector<std::string> allocators;  // paths of those that will be hooked
};

// `base`: where the image lies. `state`: what lies in its AttachState from earlier
// sessions, zeros for a new one; no patch of an earlier session may be in place.
Result<PatchPlan> MakePatchPlan(const RemoteProcess& process,
                                const std::vector<MapEntry>& maps,
                                const ProcessCode& code,
                                uint64_t base,
                                const AttachState& state);

// Functions of a process, without any of our hooks in place, that could not be hooked,
// and why. Nothing is changed.
std::vector<std::string> FindUnhookable(const RemoteProcess& process,
                                        const std::vector<MapEntry>& maps,
                                        const ProcessCode& code);

}  // namespace heapprofd
