// Labels of samples, as the engine keeps them: a labelled callsite is the same stack
// below a root frame per label (Frame::is_label), the outermost label first.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "profile/callsite_interner.h"
#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class LabelledCallsites {
 public:
  LabelledCallsites(TargetProfile* profile, CallsiteInterner* interner)
      : profile_(profile), interner_(interner) {}

  // `ids`: kMaxLabelDepth numbers whose texts are in `client`. Texts are the target's:
  // bounded, and looked up once per number.
  CallsiteId Intern(CallsiteId callsite, uint64_t ids, const ClientBlock& client);

 private:
  FrameId FrameOfLabel(uint32_t id, const ClientBlock& client);

  TargetProfile* profile_;
  CallsiteInterner* interner_;
  std::unordered_map<uint32_t, FrameId> frames_;
  std::map<std::pair<CallsiteId, uint64_t>, CallsiteId> known_;
};

}  // namespace heapprofd
