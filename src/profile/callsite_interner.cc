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
  std::vector<Callsite>& rows = profile_->callsites;
  const auto hash_of = [this](const Callsite& callsite) {
    return Mix(secret_ ^ (uint64_t{callsite.parent} << 32 | callsite.frame));
  };
  const Callsite callsite{.parent = parent, .frame = frame};
  callsites_.Prepare([&](uint32_t row) { return hash_of(rows[row]); });
  uint32_t& row = callsites_.Find(hash_of(callsite), [&](uint32_t other) {
    return rows[other].parent == parent && rows[other].frame == frame;
  });
  if (row == RowIndex::kNone) {
    row = static_cast<CallsiteId>(rows.size());
    rows.push_back(callsite);
    callsites_.CountAdded();
  }
  return row;
}

}  // namespace heapprofd
