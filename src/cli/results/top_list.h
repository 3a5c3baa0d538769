// The functions that hold the most memory: live bytes by the first frame, from the
// allocation outward, that is not the allocator's or a container's own.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
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

// The same of what nobody has touched lately (HeapDump::idle).
std::vector<TopEntry> TopIdle(const TargetProfile& profile,
                              const HeapDump& dump,
                              size_t rows);

// A function of a stack, as it is told from others in files of different builds: by name
// and module.
struct StackFunction {
  std::string name;         // in full; "": nobody knows it
  std::string module;       // the file's name, without its directory
  std::string label;        // for people
  std::string path = {};    // of the module
  std::string source = {};  // the source file's path; "": nobody knows it

  bool operator==(const StackFunction& other) const {
    return name == other.name && module == other.module;
  }

  auto operator<=>(const StackFunction& other) const {
    return std::tie(name, module) <=> std::tie(other.name, other.module);
  }
};

// What the functions of a profile's stacks are called in lists. A function is on many
// stacks, and making its name short takes long: each is made once.
class StackNames {
 public:
  // `profile` outlives it; frames that are there have their names already.
  explicit StackNames(const TargetProfile& profile) : profile_(profile) {}

  // A function of a stack, inlined ones included.
  struct Position {
    FrameId frame = kNoId;
    uint32_t line = 0;  // of the frame's, innermost first; 0 where it has none

    uint64_t key() const { return uint64_t{frame} << 32 | line; }
  };

  // What a row for this stack names: the holder and its callers.
  std::vector<Position> Shown(CallsiteId callsite);

  // From the holder outward, without allocators' and containers' own functions; of a
  // stack that has no others the innermost one.
  std::vector<Position> HolderPositions(CallsiteId callsite);

  StackFunction FunctionAt(const Position& position);

  // Those of HolderPositions.
  std::vector<StackFunction> HolderStack(CallsiteId callsite);

  // The first of these. Its label is "" where the stack has no frames.
  StackFunction Holder(CallsiteId callsite);

  // Its short name, or module+offset. The reference lives as long as this does.
  const std::string& Label(const Position& position) { return NameOf(position).label; }

  // "cache.cc:118", empty when unknown.
  std::string Location(const Position& position) const;

 private:
  struct Name {
    std::string label;
    bool is_internal = false;  // to the allocator, or a container
  };

  const Name& NameOf(const Position& position);
  template <typename Visit>
  void Walk(CallsiteId callsite, Visit visit) const;

  const TargetProfile& profile_;
  std::deque<std::vector<Name>> names_;  // by FrameId, of those that were asked for
};

}  // namespace heapprofd
