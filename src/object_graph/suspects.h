// Where memory has piled up: what a leak looks like from outside.
//
// A single object that retains much is only the way to it as long as one object that it
// dominates retains much, too. So the suspect is the last one on the way down; but where
// it goes on with objects of the same type (a list, a tree), it is the first of these.
// Many objects of one type that nothing holds together (threads, say, each with a little)
// are one suspect, when all of them retain much.
#pragma once

#include <cstdint>
#include <vector>

#include "object_graph/object_graph.h"
#include "object_graph/retention.h"

namespace heapprofd {

// What a suspect retains of one type.
struct SuspectPart {
  uint32_t type = 0;
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

struct Suspect {
  uint32_t object = kNoObject;  // it, or the largest of them
  uint64_t count = 0;           // of objects that it stands for
  uint64_t retained = 0;
  std::vector<SuspectPart> parts;  // largest first
};

inline constexpr size_t kMostSuspects = 100;
inline constexpr size_t kLongestWay = 20;  // objects; what is deeper is of no help

// Those that retain at least `least` bytes; largest first.
std::vector<Suspect> FindSuspects(const ObjectGraph& graph,
                                  const Retention& retention,
                                  uint64_t least);

// From each of the objects to where what it retains has piled up: it, the one that it
// dominates and that retains more than half as much, and so on; of a list of objects of
// one type the first. `objects`: each once.
std::vector<std::vector<uint32_t>> WaysDown(const ObjectGraph& graph,
                                            const Retention& retention,
                                            const std::vector<uint32_t>& objects);

}  // namespace heapprofd
