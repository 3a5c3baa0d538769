// The functions that hold the most memory: live bytes by the first frame, from the
// allocation outward, that is not the allocator's or a container's own.
#pragma once

#include <compare>
#include <string>
#include <tuple>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

struct TopEntry {
  std::string function;              // short name, or module+offset without symbols
  std::string location;              // "src/cache.cc:118", empty when unknown
  std::vector<std::string> callers;  // of the largest stack, nearest first
  Estimate live;
};

// At most `rows` entries, largest first; only those with live bytes.
std::vector<TopEntry> TopByLiveBytes(const TargetProfile& profile,
                                     const HeapDump& dump,
                                     size_t rows);

// The same at the moment when most was live, which `dump` has for a recording with
// DumpRules::at_max.
std::vector<TopEntry> TopAtPeak(const TargetProfile& profile,
                                const HeapDump& dump,
                                size_t rows);

// The frames that a row for this stack names: the holder and its callers.
std::vector<FrameId> ShownFrames(const TargetProfile& profile, CallsiteId callsite);

// A function of a stack, as it is told from others in files of different builds.
struct StackFunction {
  std::string name;    // in full; "": nobody knows it
  std::string module;  // the file's name, without its directory
  std::string label;   // for people

  bool operator==(const StackFunction& other) const {
    return name == other.name && module == other.module;
  }

  auto operator<=>(const StackFunction& other) const {
    return std::tie(name, module) <=> std::tie(other.name, other.module);
  }
};

// From the holder outward, without allocators' and containers' own functions; of a stack
// that has no others the innermost one.
std::vector<StackFunction> HolderStack(const TargetProfile& profile, CallsiteId callsite);

// Short name of a frame's outermost function, or module+offset.
std::string FrameLabel(const TargetProfile& profile, const Frame& frame);

}  // namespace heapprofd
