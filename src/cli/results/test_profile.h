// Profiles made by hand, for the tests of what is shown of them.
#pragma once

#include <string>
#include <vector>

#include "profile/callsite_interner.h"
#include "profile/model.h"

namespace heapprofd {

class TestProfile {
 public:
  explicit TestProfile(const std::string& program = "program") {
    profile_.process.pid = 4711;
    profile_.process.cmdline = {"/usr/bin/" + program};
    HeapDump dump;
    dump.heap_name = kMallocHeapName;
    dump.sampling_interval = 4096;
    dump.original_sampling_interval = 4096;
    profile_.heaps.push_back(dump);
  }

  // `names`: function names, the innermost first. Returns the callsite.
  CallsiteId Add(const std::vector<std::string>& names, double live_bytes) {
    CallsiteId callsite = kNoId;
    for (size_t i = names.size(); i-- > 0;)
      callsite = interner_.InternCallsite(callsite, interner_.InternNamedFrame(names[i]));
    return AddAt(callsite, live_bytes);
  }

  // A stack of one frame without a name.
  CallsiteId AddUnnamed(MappingId mapping, uint64_t rel_pc, double live_bytes) {
    return AddAt(interner_.InternCallsite(kNoId, interner_.InternFrame(mapping, rel_pc)),
                 live_bytes);
  }

  // `names`, the innermost first, called by a frame without a name.
  CallsiteId AddAbove(MappingId mapping,
                      const std::vector<std::string>& names,
                      double live_bytes) {
    CallsiteId callsite =
        interner_.InternCallsite(kNoId, interner_.InternFrame(mapping, 1));
    for (size_t i = names.size(); i-- > 0;)
      callsite = interner_.InternCallsite(callsite, interner_.InternNamedFrame(names[i]));
    return AddAt(callsite, live_bytes);
  }

  MappingId AddMapping(const std::string& path) {
    Mapping mapping;
    mapping.path = path;
    profile_.mappings.push_back(mapping);
    return static_cast<MappingId>(profile_.mappings.size() - 1);
  }

  TargetProfile& profile() { return profile_; }

  HeapDump& dump() { return profile_.heaps[0]; }

  SourceLine& LineOf(CallsiteId callsite) {
    return profile_.frames[profile_.callsites[callsite].frame].lines[0];
  }

 private:
  CallsiteId AddAt(CallsiteId callsite, double live_bytes) {
    dump().callsites[callsite].allocated +=
        {.bytes = live_bytes + 100,
         .count = 3,
         .bytes_variance = live_bytes * live_bytes / 4,
         .count_variance = 1};
    dump().callsites[callsite].freed += {.bytes = 100, .count = 1};
    return callsite;
  }

  TargetProfile profile_;
  CallsiteInterner interner_{&profile_};
};

}  // namespace heapprofd
