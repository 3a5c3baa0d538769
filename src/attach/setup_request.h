// What the client's setup has to know that runs in a process: sizes and times of ours, and
// where that process keeps what the client needs.
#pragma once

#include <cstdint>
#include <vector>

#include "attach/allocators.h"
#include "attach/remote_process.h"
#include "wire/attached_client.h"

namespace heapprofd {

// Returns the size of a process's ring, also of one that is not attached to: `wanted`, or
// a small one when that is the usual one and the memory of the process is limited
// (base/files/memory_limits.h).
uint64_t RingSizeFor(pid_t pid, uint64_t wanted);

// What the session wants.
struct SetupWishes {
  uint64_t ring_size = 0;  // bytes, a power of two
  ChildrenMode children = ChildrenMode::kIgnored;
};

// All but what a stopped thread of it tells (main_thread). `islands`: addresses of those
// to be mapped.
SetupRequest MakeSetupRequest(const RemoteProcess& process,
                              const SetupWishes& wishes,
                              const LibcAddresses& libc,
                              const std::vector<uint64_t>& islands);

// For a forked child whose hooks count already. `parents`: the request of whose image its
// own is a copy.
SetupRequest MakeChildRequest(const RemoteProcess& process,
                              const SetupWishes& wishes,
                              const SetupRequest& parents);

}  // namespace heapprofd
