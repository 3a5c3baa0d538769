#include "hotspot/machine_errand.h"

#include <utility>

#include "base/format.h"

namespace heapprofd {

Errand ErrandTo(const JavaProcess& process,
                std::function<Result<std::string>(const Sender& sender)> run) {
  return {.user = process.user,
          .group = process.group,
          .kept = {process.handle.get(), process.root.get()},
          .run = std::move(run)};
}

std::string CauseOf(const Status& status, const MachinePatience& patience) {
  if (status.code() != StatusCode::kTryAgain)
    return status.message();
  const std::string stage = status.message().empty() ? "beginning" : status.message();
  return "nothing has come for " +
         FormatDuration(static_cast<double>(patience.without_progress_ns) / 1e9) + " (" +
         stage + "); look what it does, or wait longer with --timeout";
}

}  // namespace heapprofd
