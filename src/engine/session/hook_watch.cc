#include "engine/session/hook_watch.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "attach/apart.h"
#include "attach/entry/hook_contract.h"
#include "base/files/guarded_read.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLookNs = 1'000'000'000;

std::string NamesOf(const std::vector<Hook>& hooks) {
  constexpr size_t kNamed = 3;
  std::string names;
  for (size_t i = 0; i < hooks.size() && i < kNamed; ++i)
    names += (i == 0 ? "" : ", ") + NameOf(hooks[i]);
  return hooks.size() > kNamed ? names + ", ..." : names;
}

}  // namespace

void HookWatch::Look() {
  const uint64_t now = context_->clock().last_ns();
  if (IsRunningApart() || now < looked_ns_ + kLookNs)
    return;
  looked_ns_ = now;
  std::vector<std::pair<std::shared_ptr<AttachedProcess>, ForeignMarks>> broken;
  for (LiveTarget& live : context_->targets().live()) {
    if (live.attached == nullptr || live.has_ended() || live.is_starting)
      continue;
    if (ForeignMarks marks = LookAt(live); !marks.broken.empty())
      broken.emplace_back(live.attached, std::move(marks));
  }
  for (const auto& [attached, marks] : broken)
    TakeBrokenOut(attached, marks);
}

// The kernel reads a process's memory under a lock that the process can hold.
ForeignMarks HookWatch::LookAt(LiveTarget& live) {
  const auto marks = std::make_shared<ForeignMarks>();
  const GuardedText answer =
      AskAbout(live.target->pid(), [marks, attached = live.attached] {
        *marks = attached->LookForMarks();
        return std::string("looked");
      });
  if (answer.is_late || answer.text.empty())
    return {};  // the thread may still be at it
  if (!marks->probed.empty() && !live.is_probed) {
    live.is_probed = true;
    context_->problems().Note("a kernel probe (bpftrace, perf probe) is on " +
                              NamesOf(marks->probed) + " of process " +
                              std::to_string(live.target->pid()) +
                              ": calls there take longer until it is removed");
  }
  return std::move(*marks);
}

void HookWatch::TakeBrokenOut(const std::shared_ptr<AttachedProcess>& attached,
                              const ForeignMarks& marks) {
  const auto status = std::make_shared<Status>();
  const bool is_done = RunApart(
      attached->pid(), [status, attached] { *status = attached->TakeBrokenHooksOut(); },
      context_->meanwhile());
  const bool is_out = is_done && status->ok();
  context_->problems().Note(
      "cannot record " + NamesOf(marks.broken) + " of process " +
      std::to_string(attached->pid()) +
      " any more: a probe was put behind the first instruction, where our jump is" +
      (is_out    ? "; probe the function's begin instead"
       : is_done ? "; " + status->message()
                 : ", and its hooks could not be taken out; end that probe"));
}

}  // namespace heapprofd
