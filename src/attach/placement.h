// Placing the client in a running process: its image lies there, has made the session's
// memory, and nothing leads to it yet.
//
// Whenever we die meanwhile the process goes on as if we had not been there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>

#include "attach/allocators.h"
#include "attach/patch_plan.h"
#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"
#include "wire/attached_client.h"
#include "wire/memory_files.h"

namespace heapprofd {

struct AttachOptions {
  uint64_t ring_size = 0;  // bytes, a power of two
  ChildrenMode children = ChildrenMode::kIgnored;
  // Processes of this session, by PlacedClient::seed. Their forked children have hooks
  // that count already.
  std::map<uint64_t, pid_t> recorded = {};
  // Nobody else is attached to; kNotFound of who is no such child.
  bool only_counting_children = false;
};

struct PlacedClient {
  uint64_t base = 0;  // of the image
  uint64_t seed = 0;  // not the same in any two sessions of processes
  PatchPlan plan;     // all of it is in the image, but no patch of it in place
  std::unique_ptr<SharedMemory> memory;  // the session's, which the process has mapped
  // A forked child whose hooks have counted since it began: the patches are in place.
  bool counts_already = false;
  uint64_t stopped_ns = 0;  // one thread
};

// Undoes first what a killed engine has left. kUnavailable with the reason when the process
// cannot be attached to. `held`: its only thread, stopped by us before it has run; it stays
// so. nullptr: one is borrowed.
Result<PlacedClient> PlaceClient(const RemoteProcess& process,
                                 const AttachOptions& options,
                                 AllocatorFinder* finder,
                                 TracedThread* held);

}  // namespace heapprofd
