// The frames of callstacks as a trace has them. Stacks in the order of their callsites
// share most of their callers with the one before, whose bytes stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "profile/model.h"
#include "trace/fields.h"

namespace heapprofd {

class CallstackBytes {
 public:
  // They must outlive this.
  explicit CallstackBytes(std::span<const Callsite> callsites)
      : callsites_(callsites), places_(callsites.size()) {}

  // Goes to the stack of this callsite. Gives those of its callers and itself that are to
  // be added, the outermost first.
  std::span<const CallsiteId> Begin(CallsiteId id) {
    missing_.clear();
    CallsiteId at = id;
    for (; at != kNoId && !IsOnPath(at); at = callsites_[at].parent)
      missing_.push_back(at);
    std::reverse(missing_.begin(), missing_.end());
    path_.resize(at == kNoId ? 0 : places_[at] + 1);
    bytes_.resize(path_.empty() ? 0 : path_.back().end);
    return missing_;
  }

  void Add(CallsiteId id, uint64_t frame_iid) {
    protozero::pbf_writer(bytes_).add_uint64(field::Callstack::kFrameIds, frame_iid);
    places_[id] = static_cast<uint32_t>(path_.size());
    path_.push_back({id, bytes_.size()});
  }

  // Fields of Callstack.
  const std::string& bytes() const { return bytes_; }

 private:
  struct Step {
    CallsiteId callsite;
    size_t end;  // of its bytes
  };

  bool IsOnPath(CallsiteId id) const {
    return places_[id] < path_.size() && path_[places_[id]].callsite == id;
  }

  std::span<const Callsite> callsites_;
  std::vector<uint32_t> places_;  // of callsites on the path; of others anything
  std::vector<Step> path_;        // of the current stack, the outermost first
  std::vector<CallsiteId> missing_;
  std::string bytes_;
};

}  // namespace heapprofd
