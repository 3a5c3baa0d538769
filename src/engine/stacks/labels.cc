#include "engine/stacks/labels.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/target/target_text.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxKnown = 1'000'000;

}  // namespace

FrameId LabelledCallsites::FrameOfLabel(uint32_t id, const ClientBlock& client) {
  const auto known = frames_.find(id);
  if (known != frames_.end())
    return known->second;
  std::string key = "label";
  std::string value = "[too many labels]";
  if (id < kMaxLabels) {
    LabelEntry entry{};
    memcpy(entry.key, client.labels[id].key, sizeof(entry.key));
    memcpy(entry.value, client.labels[id].value, sizeof(entry.value));
    key = TextFromTarget(entry.key, sizeof(entry.key));
    std::replace(key.begin(), key.end(), '=', '_');  // which ends the key
    value = TextFromTarget(entry.value, sizeof(entry.value));
  }
  const FrameId frame = interner_->InternNamedFrame(key + "=" + value);
  profile_->frames[frame].is_label = true;
  frames_.emplace(id, frame);
  return frame;
}

CallsiteId LabelledCallsites::Intern(CallsiteId callsite,
                                     uint64_t ids,
                                     const ClientBlock& client) {
  const auto known = known_.find({callsite, ids});
  if (known != known_.end())
    return known->second;
  CallsiteId labelled = kNoId;
  for (unsigned i = kMaxLabelDepth; i-- > 0;) {
    const auto id = static_cast<uint32_t>(ids >> i * kLabelBits & kTooManyLabels);
    if (id != 0)
      labelled = interner_->InternCallsite(labelled, FrameOfLabel(id, client));
  }
  std::vector<FrameId> frames;  // innermost first
  for (CallsiteId at = callsite; at != kNoId; at = profile_->callsites[at].parent)
    frames.push_back(profile_->callsites[at].frame);
  for (size_t i = frames.size(); i-- > 0;)
    labelled = interner_->InternCallsite(labelled, frames[i]);
  if (known_.size() >= kMaxKnown)
    known_.clear();
  known_.emplace(std::pair(callsite, ids), labelled);
  return labelled;
}

}  // namespace heapprofd
