// Where the calls of a stack are: stacks of the same functions at different lines are
// different call sites, and those of one line at several addresses are the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "profile/model.h"

namespace heapprofd {

class CallSites {
 public:
  // `profile` outlives it; frames that are there have their lines already.
  explicit CallSites(const TargetProfile& profile) : profile_(profile) {}

  // The same number for stacks whose calls are all at the same places.
  uint32_t SiteOf(CallsiteId callsite);

  // "cache.cc:118", or "libdemo.so+0x1234" where lines are unknown.
  std::string PlaceOf(FrameId frame, uint32_t line) const;

 private:
  uint32_t PlaceNumber(FrameId frame);

  const TargetProfile& profile_;
  std::map<std::string, uint32_t> places_;
  std::map<FrameId, uint32_t> place_by_frame_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> sites_;  // by the caller's, and place
  std::map<CallsiteId, uint32_t> site_by_callsite_;
};

}  // namespace heapprofd
