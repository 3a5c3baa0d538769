// Gives frames and callsites of one TargetProfile their ids.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/random_seed.h"
#include "base/row_index.h"
#include "profile/model.h"

namespace heapprofd {

class CallsiteInterner {
 public:
  // `profile` outlives the interner; its frames and callsites are only ever appended to.
  explicit CallsiteInterner(TargetProfile* profile) : profile_(profile) {}

  FrameId InternFrame(MappingId mapping, uint64_t rel_pc);

  // A frame that is no code address: "[stack lost]" and the like.
  FrameId InternNamedFrame(const std::string& name);

  // `parent` is kNoId for the outermost frame.
  CallsiteId InternCallsite(CallsiteId parent, FrameId frame);

 private:
  struct FrameKey {
    MappingId mapping;
    uint64_t rel_pc;

    bool operator==(const FrameKey&) const = default;
  };

  struct Hash {
    uint64_t secret;

    size_t operator()(const FrameKey& key) const {
      return Mix(secret ^ key.rel_pc ^ uint64_t{key.mapping} << 48);
    }
  };

  TargetProfile* profile_;
  const uint64_t secret_ = RandomSeed();  // which stacks there are is the target's word
  std::unordered_map<FrameKey, FrameId, Hash> frames_{0, Hash{secret_}};
  std::unordered_map<std::string, FrameId> named_frames_;
  RowIndex callsites_;
};

}  // namespace heapprofd
