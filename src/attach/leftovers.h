// What earlier sessions have left in a process: the images of their clients, and the hooks
// of an engine that was killed, or of a parent that has forked the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "attach/remote_process.h"
#include "base/status.h"
#include "wire/attached_client.h"

namespace heapprofd {

// An image that can be used again, as the client in it is ours.
struct LeftImage {
  uint64_t base = 0;
  AttachState state{};
  std::vector<size_t> patches;  // indexes of the records whose hooks are in
};

// Takes out the hooks of all images, unless a living engine has put them in. Gives the image
// to be used again; nullopt: there is none.
Result<std::optional<LeftImage>> UndoLeftovers(const RemoteProcess& process,
                                               const std::vector<MapEntry>& maps);

// Of a child that a process of this session has forked, with all of its hooks. `recorded`:
// those processes, by their seeds; `ring_size`: bytes.
std::optional<LeftImage> FindCountingChild(const RemoteProcess& process,
                                           const std::vector<MapEntry>& maps,
                                           const std::map<uint64_t, pid_t>& recorded,
                                           uint64_t ring_size);

// A living engine records it already: by an image with its hooks in, or by the library that
// was loaded with the program.
bool IsRecordedAlready(const RemoteProcess& process, const std::vector<MapEntry>& maps);

// The same, by the library only.
bool IsRecordedByPreload(const RemoteProcess& process, const std::vector<MapEntry>& maps);

// What is said then, and what to do.
inline constexpr char kRecordedAlready[] =
    "another heap_profile records it; end that one first";

// UndoLeftovers for a process that is not to be recorded.
Status RestoreProcess(pid_t pid);

}  // namespace heapprofd
