#include "export/folded.h"

#include <cinttypes>
#include <cstdio>
#include <map>
#include <vector>

#include "base/utf8.h"

namespace heapprofd {
namespace {

// The format has no quoting: what separates frames and lines may not be in a name.
std::string Unseparated(const std::string& name) {
  std::string text = ToUtf8(name);
  for (char& c : text) {
    if (c == ';')
      c = ':';
    else if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  }
  return text;
}

std::string UnknownName(const TargetProfile& profile, const Frame& frame) {
  std::string module = "[unknown]";
  if (frame.mapping != kNoId && !profile.mappings[frame.mapping].path.empty())
    module = profile.mappings[frame.mapping].path;
  char address[20];
  snprintf(address, sizeof(address), "+0x%" PRIx64, frame.rel_pc);
  return module.substr(module.rfind('/') + 1) + address;
}

// The functions of one frame, outermost first, ready to be joined.
std::string TextOf(const TargetProfile& profile, const Frame& frame) {
  if (frame.lines.empty())
    return Unseparated(UnknownName(profile, frame));
  std::string text;
  for (auto line = frame.lines.rbegin(); line != frame.lines.rend(); ++line) {
    if (!text.empty())
      text += ';';
    text +=
        Unseparated((line->function.empty() ? line->system_name : line->function).str());
  }
  return text;
}

}  // namespace

std::string EncodeFolded(const TargetProfile& profile, const HeapDump& dump, View view) {
  std::vector<std::string> frames;
  frames.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames)
    frames.push_back(TextOf(profile, frame));
  std::map<std::string, int64_t> stacks;
  std::vector<FrameId> path;  // innermost first
  for (const auto& [id, totals] : dump.callsites) {
    const int64_t value = ValueOf(totals, view);
    if (value == 0)
      continue;
    path.clear();
    for (CallsiteId at = id; at != kNoId; at = profile.callsites[at].parent) {
      const FrameId frame = profile.callsites[at].frame;
      if (!profile.frames[frame].is_allocator)
        path.push_back(frame);
    }
    std::string stack;
    for (auto frame = path.rbegin(); frame != path.rend(); ++frame)
      stack.append(stack.empty() ? "" : ";").append(frames[*frame]);
    stacks[stack] += value;
  }
  std::string text;
  for (const auto& [stack, value] : stacks)
    text.append(stack).append(" ").append(std::to_string(value)).append("\n");
  return text;
}

}  // namespace heapprofd
