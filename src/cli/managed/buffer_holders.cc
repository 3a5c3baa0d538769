#include "cli/managed/buffer_holders.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/hprof/examined_dump.h"
#include "profile/estimate.h"
#include "report/holder_walk.h"

namespace heapprofd {
namespace {

std::string ClassName(const Examined& examined, uint32_t object) {
  constexpr std::string_view kClass = "class ";
  std::string name = examined.heap->ObjectName(object);
  name.erase(0, name.starts_with(kClass) ? kClass.size() : 0);
  return name;
}

void ExpectMisses(uint64_t bytes, UnsampledBuffers* unsampled) {
  const auto size = static_cast<double>(bytes);
  const double missed = 1 - SamplingProbability(bytes, unsampled->sampling.interval);
  unsampled->expected += size * missed;
  unsampled->variance += size * size * missed * (1 - missed);
}

// One class's buffers while they are summed up.
struct Holding {
  BufferSum sum;
  std::map<std::vector<std::string>, BufferSum> by_stack;  // by what is shown of it
};

BufferOwner Finished(const std::string& name, const Holding& holding) {
  BufferOwner owner{.name = name, .sum = holding.sum};
  for (const auto& [functions, sum] : holding.by_stack)
    owner.stacks.push_back({functions, sum});
  std::ranges::stable_sort(owner.stacks, std::ranges::greater(),
                           [](const auto& stack) { return stack.sum.bytes; });
  return owner;
}

}  // namespace

Result<HeldBuffers> FindHolders(const std::vector<HeapDirectBuffer>& buffers,
                                int64_t pid,
                                OpenedDump* opened,
                                NativeSide* native) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(opened));
  UnsampledBuffers unsampled;
  unsampled.sampling = native->SamplingOf(pid);
  std::map<std::string, Holding> by_name;
  const Retention& retention = examined.retention;
  static_assert(kHeldByRoots == kNoId, "the walk ends there");
  HolderWalk<std::string> walk(
      [&](uint32_t object) { return retention.DominatorOf(object); },
      [&](uint32_t object) { return ClassName(examined, object); });
  for (const HeapDirectBuffer& buffer : buffers) {
    const bool is_garbage = retention.DominatorOf(buffer.object) == kUnreachable;
    Holding& holding = by_name[is_garbage ? kHeldByNobody : walk.OwnerOf(buffer.object)];
    holding.sum.Add(buffer.bytes);
    ExpectMisses(buffer.bytes, &unsampled);
    if (const auto* functions = native->StackOf(pid, buffer.address))
      holding.by_stack[*functions].Add(buffer.bytes);
    else
      unsampled.sum.Add(buffer.bytes);
  }
  HeldBuffers held;
  for (const auto& [name, holding] : by_name)
    held.owners.push_back(Finished(name, holding));
  std::ranges::stable_sort(held.owners, std::ranges::greater(),
                           [](const BufferOwner& owner) { return owner.sum.bytes; });
  if (unsampled.sum.buffers > 0)
    held.unsampled = unsampled;
  return held;
}

}  // namespace heapprofd
