#include "cli/results/top_list.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "base/text.h"
#include "profile/allocator_internals.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

constexpr size_t kCallers = 3;

std::string ModuleOffset(const TargetProfile& profile, const Frame& frame) {
  std::array<char, 32> offset{};
  snprintf(offset.data(), offset.size(), "%#llx",
           static_cast<unsigned long long>(frame.rel_pc));
  if (frame.mapping == kNoId)
    return std::string("[unmapped] ") + offset.data();
  const std::string& path = profile.mappings[frame.mapping].path;
  return (path.empty() ? "[anonymous]" : std::string(FileName(path))) + "+" +
         offset.data();
}

std::string LineLabel(const SourceLine& line) {
  return line.system_name.empty() ? line.function.str() : ShortName(line.system_name);
}

// One function of a stack, inlined ones included.
struct Position {
  FrameId frame;
  std::string label;
  std::string location;
  const SourceLine* line;  // nullptr: without symbols
};

// From the allocation outward.
std::vector<Position> Expand(const TargetProfile& profile, CallsiteId callsite) {
  std::vector<Position> positions;
  for (; callsite != kNoId; callsite = profile.callsites[callsite].parent) {
    const FrameId id = profile.callsites[callsite].frame;
    const Frame& frame = profile.frames[id];
    if (frame.is_allocator && profile.callsites[callsite].parent != kNoId)
      continue;
    if (frame.lines.empty())
      positions.push_back({id, ModuleOffset(profile, frame), "", nullptr});
    for (const SourceLine& line : frame.lines)
      positions.push_back({id, LineLabel(line),
                           line.file.empty() ? ""
                                             : std::string(FileName(line.file.str())) +
                                                   ":" + std::to_string(line.line),
                           &line});
  }
  return positions;
}

StackFunction FunctionAt(const TargetProfile& profile, const Position& position) {
  StackFunction function;
  const MappingId mapping = profile.frames[position.frame].mapping;
  if (mapping != kNoId)
    function.module = FileName(profile.mappings[mapping].path);
  if (position.line == nullptr) {
    function.label = "[" + (function.module.empty() ? "unknown" : function.module) + "]";
    return function;
  }
  const SourceLine& line = *position.line;
  function.name = (line.function.empty() ? line.system_name : line.function).str();
  function.label = position.label;
  return function;
}

struct Group {
  Estimate live;
  double largest = 0;
  CallsiteId largest_callsite = kNoId;
  std::string location;
};

size_t FirstInteresting(const std::vector<Position>& positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!IsAllocatorInternal(positions[i].label))
      return i;
  }
  return 0;
}

void AddStack(const TargetProfile& profile,
              CallsiteId callsite,
              const Estimate& live,
              std::map<std::string, Group>* groups) {
  if (live.bytes < 1)
    return;
  const std::vector<Position> positions = Expand(profile, callsite);
  const Position& holder = positions[FirstInteresting(positions)];
  Group& group = (*groups)[holder.label];
  group.live += live;
  if (live.bytes > group.largest) {
    group.largest = live.bytes;
    group.largest_callsite = callsite;
    group.location = holder.location;
  }
}

// The largest `rows` of them.
std::vector<TopEntry> Largest(const TargetProfile& profile,
                              const std::map<std::string, Group>& groups,
                              size_t rows) {
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.live.bytes > b.second.live.bytes;
  });
  std::vector<TopEntry> entries;
  for (size_t i = 0; i < sorted.size() && i < rows; ++i) {
    const Group& group = sorted[i].second;
    TopEntry entry{.function = sorted[i].first,
                   .location = group.location,
                   .callers = {},
                   .live = group.live};
    const std::vector<Position> positions = Expand(profile, group.largest_callsite);
    for (size_t at = FirstInteresting(positions) + 1;
         at < positions.size() && entry.callers.size() < kCallers; ++at)
      entry.callers.push_back(positions[at].label);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string FrameLabel(const TargetProfile& profile, const Frame& frame) {
  return frame.lines.empty() ? ModuleOffset(profile, frame)
                             : LineLabel(frame.lines.back());
}

std::vector<StackFunction> HolderStack(const TargetProfile& profile,
                                       CallsiteId callsite) {
  const std::vector<Position> positions = Expand(profile, callsite);
  std::vector<StackFunction> stack;
  for (const Position& position : positions) {
    if (!IsAllocatorInternal(position.label))
      stack.push_back(FunctionAt(profile, position));
  }
  if (stack.empty() && !positions.empty())
    stack.push_back(FunctionAt(profile, positions[0]));
  return stack;
}

std::vector<FrameId> ShownFrames(const TargetProfile& profile, CallsiteId callsite) {
  const std::vector<Position> positions = Expand(profile, callsite);
  const size_t first = FirstInteresting(positions);
  std::vector<FrameId> frames;
  for (size_t at = first; at < positions.size() && at <= first + kCallers; ++at)
    frames.push_back(positions[at].frame);
  return frames;
}

std::vector<TopEntry> TopByLiveBytes(const TargetProfile& profile,
                                     const HeapDump& dump,
                                     size_t rows) {
  std::map<std::string, Group> groups;
  for (const auto& [callsite, totals] : dump.callsites)
    AddStack(profile, callsite, totals.live(), &groups);
  return Largest(profile, groups, rows);
}

std::vector<TopEntry> TopAtPeak(const TargetProfile& profile,
                                const HeapDump& dump,
                                size_t rows) {
  std::map<std::string, Group> groups;
  for (const auto& [callsite, live] : dump.peak)
    AddStack(profile, callsite, live, &groups);
  return Largest(profile, groups, rows);
}

}  // namespace heapprofd
