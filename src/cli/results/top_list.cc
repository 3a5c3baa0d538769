#include "cli/results/top_list.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "profile/allocator_internals.h"
#include "profile/module_offset.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

constexpr size_t kCallers = 3;

std::string LineLabel(const SourceLine& line) {
  return line.system_name.empty() ? line.function.str() : ShortName(line.system_name);
}

// Stacks by the name of their holder.
class HolderGroups {
 public:
  explicit HolderGroups(const TargetProfile& profile) : names_(profile) {}

  void Add(CallsiteId callsite, const Estimate& live) {
    if (live.bytes < 1)
      return;
    const StackNames::Position holder = names_.Shown(callsite)[0];
    Group& group = groups_[names_.Label(holder)];
    group.live += live;
    if (live.bytes > group.largest) {
      group.largest = live.bytes;
      group.largest_callsite = callsite;
    }
  }

  std::vector<TopEntry> Largest(size_t rows) {
    std::vector<std::pair<std::string_view, Group>> sorted(groups_.begin(),
                                                           groups_.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.live.bytes > b.second.live.bytes;
    });
    std::vector<TopEntry> entries;
    for (size_t i = 0; i < sorted.size() && i < rows; ++i)
      entries.push_back(EntryOf(sorted[i].second));
    return entries;
  }

 private:
  struct Group {
    Estimate live;
    double largest = 0;
    CallsiteId largest_callsite = kNoId;
  };

  TopEntry EntryOf(const Group& group) {
    const std::vector<StackNames::Position> shown = names_.Shown(group.largest_callsite);
    TopEntry entry{.function = names_.Label(shown[0]),
                   .location = names_.Location(shown[0]),
                   .callers = {},
                   .live = group.live};
    for (size_t at = 1; at < shown.size(); ++at)
      entry.callers.push_back(names_.Label(shown[at]));
    return entry;
  }

  StackNames names_;
  std::map<std::string_view, Group> groups_;  // by the holder's label, which names_ has
};

}  // namespace

// `visit(position)` from the allocation outward; false: no further.
template <typename Visit>
void StackNames::Walk(CallsiteId callsite, Visit visit) const {
  for (; callsite != kNoId; callsite = profile_.callsites[callsite].parent) {
    const FrameId id = profile_.callsites[callsite].frame;
    const Frame& frame = profile_.frames[id];
    if (frame.is_allocator && profile_.callsites[callsite].parent != kNoId)
      continue;
    const auto count = static_cast<uint32_t>(std::max<size_t>(frame.lines.size(), 1));
    for (uint32_t line = 0; line < count; ++line) {
      if (!visit(Position{.frame = id, .line = line}))
        return;
    }
  }
}

const StackNames::Name& StackNames::NameOf(const Position& position) {
  if (position.frame >= names_.size())
    names_.resize(profile_.frames.size());
  std::vector<Name>& names = names_[position.frame];
  const Frame& frame = profile_.frames[position.frame];
  if (names.empty() && frame.lines.empty())
    names.push_back({.label = ModuleOffset(profile_, frame)});
  else if (names.empty())
    for (const SourceLine& line : frame.lines)
      names.push_back({.label = LineLabel(line)});
  else
    return names[position.line];
  for (Name& name : names)
    name.is_internal = IsAllocatorInternal(name.label);
  return names[position.line];
}

std::string StackNames::Location(const Position& position) const {
  const std::vector<SourceLine>& lines = profile_.frames[position.frame].lines;
  if (lines.empty() || lines[position.line].file.empty())
    return "";
  const SourceLine& line = lines[position.line];
  return std::string(FileName(line.file.str())) + ":" + std::to_string(line.line);
}

// Where all are the allocator's own, the innermost one is shown with its callers.
std::vector<StackNames::Position> StackNames::Shown(CallsiteId callsite) {
  std::vector<Position> shown;
  bool has_holder = false;
  Walk(callsite, [&](const Position& position) {
    if (!has_holder && !NameOf(position).is_internal) {
      has_holder = true;
      shown.clear();
    }
    if (shown.size() <= kCallers)
      shown.push_back(position);
    return !has_holder || shown.size() <= kCallers;
  });
  return shown;
}

StackFunction StackNames::FunctionAt(const Position& position) {
  StackFunction function;
  const Frame& frame = profile_.frames[position.frame];
  if (frame.mapping != kNoId) {
    function.path = profile_.mappings[frame.mapping].path;
    function.module = FileName(function.path);
  }
  if (frame.lines.empty()) {
    function.label = "[" + (function.module.empty() ? "unknown" : function.module) + "]";
    return function;
  }
  const SourceLine& line = frame.lines[position.line];
  function.name = (line.function.empty() ? line.system_name : line.function).str();
  function.label = Label(position);
  function.source = line.file.str();
  return function;
}

std::vector<StackNames::Position> StackNames::HolderPositions(CallsiteId callsite) {
  std::vector<Position> positions;
  std::optional<Position> innermost;
  Walk(callsite, [&](const Position& position) {
    if (!innermost)
      innermost = position;
    if (!NameOf(position).is_internal)
      positions.push_back(position);
    return true;
  });
  if (positions.empty() && innermost)
    positions.push_back(*innermost);
  return positions;
}

std::vector<StackFunction> StackNames::HolderStack(CallsiteId callsite) {
  std::vector<StackFunction> functions;
  for (const Position& position : HolderPositions(callsite))
    functions.push_back(FunctionAt(position));
  return functions;
}

StackFunction StackNames::Holder(CallsiteId callsite) {
  const std::vector<Position> shown = Shown(callsite);
  return shown.empty() ? StackFunction() : FunctionAt(shown[0]);
}

std::vector<TopEntry> TopByLiveBytes(const TargetProfile& profile,
                                     const HeapDump& dump,
                                     size_t rows) {
  HolderGroups groups(profile);
  for (const auto& [callsite, totals] : dump.callsites)
    groups.Add(callsite, totals.live());
  return groups.Largest(rows);
}

namespace {

std::vector<TopEntry> LargestOf(const TargetProfile& profile,
                                const CallsiteRows<Estimate>& rows_of,
                                size_t rows) {
  HolderGroups groups(profile);
  for (const auto& [callsite, held] : rows_of)
    groups.Add(callsite, held);
  return groups.Largest(rows);
}

}  // namespace

std::vector<TopEntry> TopAtPeak(const TargetProfile& profile,
                                const HeapDump& dump,
                                size_t rows) {
  return LargestOf(profile, dump.peak, rows);
}

std::vector<TopEntry> TopIdle(const TargetProfile& profile,
                              const HeapDump& dump,
                              size_t rows) {
  return LargestOf(profile, dump.idle.callsites, rows);
}

}  // namespace heapprofd
