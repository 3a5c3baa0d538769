#include "cli/top/live_names.h"

#include <algorithm>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMostFrames = 1000;         // of a turn
constexpr uint64_t kNewsNs = 1'000'000'000;  // between two that are not the last

bool WasCancelled(const std::vector<SymbolizeReport>& reports) {
  return std::any_of(reports.begin(), reports.end(), [](const SymbolizeReport& report) {
    return std::any_of(report.modules.begin(), report.modules.end(),
                       [](const ModuleSymbols& module) {
                         return module.reason == NoSymbolsReason::kCancelled;
                       });
  });
}

}  // namespace

LiveNames::Part LiveNames::NextPart(RestoredProfile& process, size_t first, size_t room) {
  const CodeTable code = process.code();
  Part part{.process = &process, .frames = {}, .originals = {}};
  part.frames.mappings = code.mappings;
  const size_t end = std::min(code.frames.size(), first + room);
  for (size_t id = first; id < end; ++id) {
    if (!code.frames[id].lines.empty())
      continue;
    part.frames.frames.push_back(code.frames[id]);
    part.originals.push_back(static_cast<FrameId>(id));
  }
  return part;
}

void LiveNames::Find(const LiveProcesses& processes) {
  std::vector<Part> parts;
  std::map<const RestoredProfile*, size_t> asked = asked_;
  size_t room = kMostFrames;
  for (RestoredProfile* process : processes) {
    size_t& first = asked[process];
    const size_t end = std::min(process->code().frames.size(), first + room);
    if (end == first)
      continue;
    parts.push_back(NextPart(*process, first, room));
    room -= end - first;
    first = end;
  }
  if (parts.empty())
    return;
  std::vector<ProfileToSymbolize> profiles;
  profiles.reserve(parts.size());
  for (Part& part : parts)
    profiles.push_back({.code = CodeOf(part.frames), .open_module = nullptr});
  if (!WasCancelled(SymbolizeProfiles(profiles, options_)))
    asked_ = std::move(asked);
  for (Part& part : parts) {
    for (size_t i = 0; i < part.originals.size(); ++i) {
      std::vector<SourceLine>& lines = part.frames.frames[i].lines;
      has_news_ |= !lines.empty();
      part.process->code().frames[part.originals[i]].lines = std::move(lines);
    }
  }
}

bool LiveNames::HasMore(const LiveProcesses& processes) const {
  return std::any_of(processes.begin(), processes.end(),
                     [this](RestoredProfile* process) {
                       const auto asked = asked_.find(process);
                       return process->code().frames.size() >
                              (asked == asked_.end() ? 0 : asked->second);
                     });
}

bool LiveNames::TakeNews(const LiveProcesses& processes, uint64_t now_ns) {
  if (!has_news_ || (told_ns_ != 0 && now_ns < told_ns_ + kNewsNs && HasMore(processes)))
    return false;
  has_news_ = false;
  told_ns_ = now_ns;
  return true;
}

}  // namespace heapprofd
