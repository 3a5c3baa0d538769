// Gives frames and callsites of one TargetProfile their ids.
#pragma once

#include <cstdint>
#include <unordered_map>

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

  struct CallsiteKey {
    CallsiteId parent;
    FrameId frame;

    bool operator==(const CallsiteKey&) const = default;
  };

  struct Hash {
    size_t operator()(const FrameKey& key) const {
      return Mix(key.rel_pc ^ uint64_t{key.mapping} << 48);
    }

    size_t operator()(const CallsiteKey& key) const {
      return Mix(uint64_t{key.parent} << 32 | key.frame);
    }

    static size_t Mix(uint64_t value) {
      value *= 0x9e3779b97f4a7c15u;
      return value ^ value >> 32;
    }
  };

  TargetProfile* profile_;
  std::unordered_map<FrameKey, FrameId, Hash> frames_;
  std::unordered_map<std::string, FrameId> named_frames_;
  std::unordered_map<CallsiteKey, CallsiteId, Hash> callsites_;
};

}  // namespace heapprofd
