// An errand to a virtual machine, as its own user, and why one has failed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "hotspot/errand.h"
#include "hotspot/java_process.h"

namespace heapprofd {

struct MachinePatience {
  uint64_t until_it_listens_ns = 0;
  uint64_t without_progress_ns = 0;  // of any kind, from then on
};

// With its handle and its root directory.
Errand ErrandTo(const JavaProcess& process,
                std::function<Result<std::string>(const Sender& sender)> run);

// For messages: `status` of RunErrand.
std::string CauseOf(const Status& status, const MachinePatience& patience);

}  // namespace heapprofd
