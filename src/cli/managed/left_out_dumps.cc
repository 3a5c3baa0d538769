#include "cli/managed/left_out_dumps.h"

namespace heapprofd {
namespace {

std::string CountedDumps(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " dump" : " dumps") + " of the Java heap";
}

}  // namespace

std::string LeftOutDumps::Text(uint32_t most) const {
  const uint64_t count = busy_ + beyond_ + ending_ + unasked_;
  if (count == 0)
    return "";
  std::string reasons;
  const auto add = [&reasons](uint64_t of_these, const std::string& reason) {
    if (of_these > 0)
      reasons +=
          (reasons.empty() ? "" : "; ") + std::to_string(of_these) + " because " + reason;
  };
  add(busy_, "another one was being taken");
  add(beyond_, "--java-dumps allows " + std::to_string(most));
  add(ending_, "the recording was ending");
  add(unasked_, "there was nobody to ask (" + why_unasked_ + ")");
  return "heap_profile: " + CountedDumps(count) +
         (count == 1 ? " was left out: " : " were left out: ") + reasons + "\n";
}

}  // namespace heapprofd
