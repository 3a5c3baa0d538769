#include "engine/session/settled_programs.h"

#include "attach/remote_process.h"

namespace heapprofd {

bool SettledPrograms::Contains(pid_t pid, uint64_t now_ns) {
  if (seen_.size() > kMaxProcesses)
    seen_.clear();
  const std::string image = ImageId(pid);
  const auto [seen, is_new] =
      seen_.try_emplace(pid, Seen{.image = image, .since_ns = now_ns});
  if (!is_new && seen->second.image != image)
    seen->second = {.image = image, .since_ns = now_ns};
  return now_ns >= seen->second.since_ns + kSettleNs;
}

}  // namespace heapprofd
