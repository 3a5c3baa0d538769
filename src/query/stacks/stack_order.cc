#include "query/stacks/stack_order.h"

#include <algorithm>
#include <array>
#include <future>
#include <utility>
#include <vector>

#include "query/allocators.h"

namespace heapprofd {
namespace {

constexpr size_t kMostFunctions = size_t{1} << 28;

}  // namespace

Result<std::optional<StackOrder>> StackOrder::Of(const ImportedTrace& trace,
                                                 const CancelFlag& cancelled) {
  StackOrder order(trace);
  HPD_TRY_ASSIGN(const bool has_room, order.AddStacks(trace, cancelled));
  if (!has_room)
    return std::optional<StackOrder>();
  order.FindGroups();
  HPD_TRY(order.Sort(cancelled));
  return std::optional<StackOrder>(std::move(order));
}

Result<bool> StackOrder::AddStacks(const ImportedTrace& trace,
                                   const CancelFlag& cancelled) {
  const std::vector<bool> is_allocator = AllocatorFrames(trace);
  for (uint32_t stack = 0; stack < trace.stacks.row_count(); ++stack) {
    if (cancelled)
      return WasCancelled();
    std::span<const uint32_t> frames = trace.stacks.FramesOf(stack);
    while (frames.size() > 1 && is_allocator[frames.back()])
      frames = frames.first(frames.size() - 1);
    if (!AddFunctions(frames))
      return false;
    ends_.push_back(static_cast<uint32_t>(of_stacks_.size()));
  }
  return true;
}

// Most frames have one function, and are copied before their functions are looked up.
bool StackOrder::AddFunctions(std::span<const uint32_t> frames) {
  if (frames.size() > kMostFunctions - of_stacks_.size())
    return false;
  const size_t begin = of_stacks_.size();
  of_stacks_.append(frames);
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::span<const uint32_t> functions = functions_.At(frames[i]);
    if (functions.size() > 1)
      return AddInlined(frames.subspan(i), begin + i);
    of_stacks_[begin + i] = functions[0];
  }
  return true;
}

bool StackOrder::AddInlined(std::span<const uint32_t> frames, size_t begin) {
  of_stacks_.resize(begin, 0);
  for (const uint32_t frame : frames) {
    const std::span<const uint32_t> functions = functions_.At(frame);
    if (functions.size() > kMostFunctions - of_stacks_.size())
      return false;
    for (size_t i = functions.size(); i-- > 0;)
      of_stacks_.push_back(functions[i]);
  }
  return true;
}

// What functions agree on is a function, too, and added to the table meanwhile.
void StackOrder::FindGroups() {
  FunctionTable groups;
  FunctionTable& functions = functions_.table();
  for (uint32_t row = 0; row < functions.size(); ++row) {
    TreeFunction named;
    named.name = functions[row].name;
    named.mapping_name = functions[row].mapping_name;
    const uint32_t group = groups.Intern(named);
    group_of_.push_back(group);
    if (group == merged_.size())
      merged_.push_back(row);
    else
      merged_[group] = functions.Merge(merged_[group], row);
  }
}

// Stacks that end come before those that go on.
uint64_t StackOrder::KeyAt(uint32_t stack, uint32_t depth) const {
  const std::span<const uint32_t> functions = FunctionsOf(stack);
  const uint64_t key =
      depth < functions.size() ? uint64_t{group_of_[functions[depth]]} + 1 : 0;
  return key << 32 | stack;
}

// From this depth on: the first one where they differ, or one has ended.
uint32_t StackOrder::FirstDifference(uint32_t a, uint32_t b, uint32_t depth) const {
  const std::span<const uint32_t> of_a = FunctionsOf(a);
  const std::span<const uint32_t> of_b = FunctionsOf(b);
  const size_t end = std::min(of_a.size(), of_b.size());
  const auto are_alike = [this](uint32_t one, uint32_t other) {
    return one == other || group_of_[one] == group_of_[other];
  };
  while (depth < end && are_alike(of_a[depth], of_b[depth]))
    ++depth;
  return depth;
}

// Most groups are a few stacks that go on together for long: so each is compared with
// others as far as it takes, and not all of them at each depth. `place`: of the first.
void StackOrder::SortFew(std::span<uint64_t> keys, size_t place, uint32_t depth) {
  const auto is_before = [&](uint64_t a, uint64_t b) {
    const auto [left, right] =
        std::pair(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
    const uint32_t shared = FirstDifference(left, right, depth);
    return KeyAt(left, shared) < KeyAt(right, shared);
  };
  for (auto key = keys.begin(); key != keys.end(); ++key)
    std::rotate(std::upper_bound(keys.begin(), key, *key, is_before), key, key + 1);
  for (size_t i = 1; i < keys.size(); ++i)
    shared_[place + i] = FirstDifference(static_cast<uint32_t>(keys[i - 1]),
                                         static_cast<uint32_t>(keys[i]), depth);
}

// By the function at their depth; those that have the same one are groups of their own.
void StackOrder::SortGroup(const EqualStacks& equal,
                           std::span<uint64_t> keys,
                           std::vector<EqualStacks>& groups) {
  constexpr size_t kFew = 8;
  const std::span<uint64_t> part = keys.subspan(equal.begin, equal.end - equal.begin);
  if (part.size() <= kFew)
    return SortFew(part, equal.begin, equal.depth);
  for (uint64_t& key : part)
    key = KeyAt(static_cast<uint32_t>(key), equal.depth);
  if (!std::is_sorted(part.begin(), part.end()))
    std::sort(part.begin(), part.end());
  for (size_t begin = equal.begin, end = begin; begin < equal.end; begin = end) {
    const uint64_t key = keys[begin] >> 32;
    while (end < equal.end && keys[end] >> 32 == key)
      ++end;
    shared_[begin] = begin == equal.begin ? shared_[begin] : equal.depth;
    if (key == 0)
      std::fill(&shared_[begin] + 1, &shared_[begin] + (end - begin), equal.depth);
    else if (end - begin > 1)
      groups.push_back({begin, end, equal.depth + 1});
  }
}

Status StackOrder::SortGroups(std::vector<EqualStacks> groups,
                              std::span<uint64_t> keys,
                              const CancelFlag& cancelled) {
  while (!groups.empty()) {
    if (cancelled)
      return WasCancelled();
    const EqualStacks next = groups.back();
    groups.pop_back();
    SortGroup(next, keys, groups);
  }
  return {};
}

// One function after the other, from the outermost inward, each time only among those that
// are the same up to there. Keys and the stacks they are of lie together: what the stacks
// themselves say is read once for each depth. As soon as no group is large, two threads
// share them.
Status StackOrder::Sort(const CancelFlag& cancelled) {
  constexpr size_t kLeastForTwo = 10'000;  // stacks
  constexpr size_t kShare = 8;             // a group of less than an eighth is not large
  std::vector<uint64_t> keys(ends_.size());
  shared_.resize(keys.size(), 0);
  for (uint32_t stack = 0; stack < keys.size(); ++stack)
    keys[stack] = stack;
  std::vector<EqualStacks> groups;
  if (!keys.empty())
    groups.push_back({0, keys.size(), 0});
  const size_t large = std::max(kLeastForTwo, keys.size()) / kShare;
  const auto is_large = [large](const EqualStacks& group) {
    return group.end - group.begin > large;
  };
  for (auto next = groups.begin(); next != groups.end();
       next = std::find_if(groups.begin(), groups.end(), is_large)) {
    if (cancelled)
      return WasCancelled();
    const EqualStacks group = *next;
    *next = groups.back();
    groups.pop_back();
    SortGroup(group, keys, groups);
  }
  HPD_TRY(SortInHalves(std::move(groups), keys, cancelled));
  for (const uint64_t key : keys)
    stacks_.push_back(static_cast<uint32_t>(key));
  return {};
}

Status StackOrder::SortInHalves(std::vector<EqualStacks> groups,
                                std::span<uint64_t> keys,
                                const CancelFlag& cancelled) {
  if (groups.size() < 2)
    return SortGroups(std::move(groups), keys, cancelled);
  std::array<std::vector<EqualStacks>, 2> halves;
  std::array<size_t, 2> sizes{};
  for (const EqualStacks& group : groups) {
    const size_t half = sizes[0] <= sizes[1] ? 0 : 1;
    halves[half].push_back(group);
    sizes[half] += group.end - group.begin;
  }
  std::future<Status> other = std::async(std::launch::async | std::launch::deferred, [&] {
    return SortGroups(std::move(halves[1]), keys, cancelled);
  });
  Status status = SortGroups(std::move(halves[0]), keys, cancelled);
  Status others = other.get();
  return status.ok() ? others : status;
}

uint32_t StackOrder::FunctionAt(std::span<const uint32_t> stacks, uint32_t depth) {
  uint32_t function = FunctionsOf(stacks[0])[depth];
  const uint32_t all = merged_[group_of_[function]];
  for (size_t i = 1; i < stacks.size() && function != all; ++i)
    function = functions_.table().Merge(function, FunctionsOf(stacks[i])[depth]);
  return function;
}

}  // namespace heapprofd
