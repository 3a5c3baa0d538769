#include "profile/callsite_interner.h"

namespace heapprofd {

FrameId CallsiteInterner::InternFrame(MappingId mapping, uint64_t rel_pc) {
  const auto next = static_cast<FrameId>(profile_->frames.size());
  const auto [entry, is_new] = frames_.try_emplace(FrameKey{mapping, rel_pc}, next);
  if (is_new)
    profile_->frames.push_back(Frame{.mapping = mapping, .rel_pc = rel_pc, .lines = {}});
  return entry->second;
}

FrameId CallsiteInterner::InternNamedFrame(const std::string& name) {
  const auto next = static_cast<FrameId>(profile_->frames.size());
  const auto [entry, is_new] = named_frames_.try_emplace(name, next);
  if (is_new) {
    Frame frame;
    frame.lines.push_back(
        SourceLine{.function = name, .system_name = name, .file = {}, .line = 0});
    profile_->frames.push_back(std::move(frame));
  }
  return entry->second;
}

CallsiteId CallsiteInterner::InternCallsite(CallsiteId parent, FrameId frame) {
  const auto next = static_cast<CallsiteId>(profile_->callsites.size());
  const auto [entry, is_new] = callsites_.try_emplace(CallsiteKey{parent, frame}, next);
  if (is_new)
    profile_->callsites.push_back(Callsite{.parent = parent, .frame = frame});
  return entry->second;
}

}  // namespace heapprofd
