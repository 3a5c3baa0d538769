// A target whose process still reports, or whose ring has not been read to its
// end.
#pragma once

#include <cstdint>
#include <memory>

#include "attach/attached_process.h"
#include "base/scoped_fd.h"
#include "engine/target/target.h"

namespace heapprofd {

struct LiveTarget {
  bool has_ended() const { return !pidfd.valid(); }

  Target* target = nullptr;
  ScopedFd pidfd = ScopedFd();  // invalid: it has ended
  // nullptr: its hooks are not ours to take out, or not in yet. What is done
  // apart (attach/apart.h) has a share of its own.
  std::shared_ptr<AttachedProcess> attached = nullptr;
  bool is_starting = false;   // it has been caught, and its hooks go in
  bool was_attached = false;  // its client was not preloaded
  bool is_probed = false;     // that was told
  uint32_t forks_seen = 0;
  // Of one that has ended: where its ring does, and until when that is read.
  uint64_t rest_end = 0;
  uint64_t give_up_ns = 0;
};

}  // namespace heapprofd
