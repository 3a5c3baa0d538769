// The code that a profile's stacks lead through. Whoever finds names for its frames gets
// this to write them to, and nothing else of the profile, which its recorder alone
// writes.
#pragma once

#include <vector>

#include "profile/model.h"

namespace heapprofd {

struct CodeTable {
  const std::vector<Mapping>& mappings;
  std::vector<Frame>& frames;
};

// As long as the profile is there.
inline CodeTable CodeOf(TargetProfile& profile) {
  return {.mappings = profile.mappings, .frames = profile.frames};
}

}  // namespace heapprofd
