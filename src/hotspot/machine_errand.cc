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

Result<std::string> AskOnErrand(
    const JavaProcess& process,
    const MachinePatience& patience,
    int stop_fd,
    const std::function<Result<std::string>(const Attachment& attachment)>& ask) {
  const Errand errand =
      ErrandTo(process, [&](const Sender& sender) -> Result<std::string> {
        HPD_TRY_ASSIGN(const Attachment attachment,
                       OpenAttachment(process, sender, patience));
        return ask(attachment);
      });
  Result<std::string> answer =
      RunErrand(errand, {.progress = [] { return uint64_t{0}; },
                         .patience_ns = patience.without_progress_ns,
                         .show = [](const std::string&) {},
                         .stop_fd = stop_fd});
  if (answer.ok())
    return answer;
  return Status(answer.status().code(), CauseOf(answer.status(), patience));
}

std::string CauseOf(const Status& status, const MachinePatience& patience) {
  if (status.code() != StatusCode::kTryAgain)
    return status.message();
  const std::string stage = status.message().empty() ? "beginning" : status.message();
  return "nothing has come for " +
         FormatDuration(static_cast<double>(patience.without_progress_ns) / 1e9) + " (" +
         stage + "); look what it does, or " + patience.advice;
}

}  // namespace heapprofd
