#include "export/stack_functions.h"

#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "profile/module_offset.h"

namespace heapprofd {
namespace {

std::vector<ExportedFunction> FunctionsOf(const TargetProfile& profile,
                                          const Frame& frame) {
  const std::string module =
      frame.mapping == kNoId ? "" : ToUtf8(profile.mappings[frame.mapping].path);
  if (frame.lines.empty())
    return {{.name = ToUtf8(ModuleOffset(profile, frame)), .module = module, .file = ""}};
  std::vector<ExportedFunction> functions;
  for (const SourceLine& line : frame.lines)
    functions.push_back(
        {.name = ToUtf8((line.function.empty() ? line.system_name : line.function).str()),
         .module = module,
         .file = ToUtf8(line.file.str()),
         .line = line.line});
  return functions;
}

}  // namespace

StackFunctions::StackFunctions(const TargetProfile& profile) : profile_(profile) {
  std::map<ExportedFunction, uint32_t> rows;
  by_frame_.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    std::vector<uint32_t>& frame_rows = by_frame_.emplace_back();
    for (ExportedFunction& function : FunctionsOf(profile, frame)) {
      const auto [entry, is_new] =
          rows.try_emplace(function, static_cast<uint32_t>(functions_.size()));
      if (is_new)
        functions_.push_back(function);
      frame_rows.push_back(entry->second);
    }
  }
}

std::vector<uint32_t> StackFunctions::Of(CallsiteId callsite) const {
  std::vector<uint32_t> stack;
  for (CallsiteId at = callsite; at != kNoId; at = profile_.callsites[at].parent) {
    const FrameId frame = profile_.callsites[at].frame;
    if (!profile_.frames[frame].is_allocator)
      stack.insert(stack.end(), by_frame_[frame].begin(), by_frame_[frame].end());
  }
  std::reverse(stack.begin(), stack.end());
  return stack;
}

}  // namespace heapprofd
