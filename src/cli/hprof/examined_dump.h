// A heap dump as a graph of objects of which it is known who dominates whom: what all
// views need that are about single objects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/column.h"
#include "base/status.h"
#include "cli/hprof/opened_dump.h"
#include "hprof/load_graph.h"
#include "object_graph/dominators.h"

namespace heapprofd {

struct Examined {
  hprof::HeapGraph heap;
  DominatorTree tree;
  Column<uint64_t> retained;
  uint64_t total = 0;  // of what can be reached
};

Result<Examined> Examine(OpenedDump* opened);

std::string NameOf(const hprof::HeapGraph& heap, uint32_t object);

// "class java.lang.String" for the object that stands for a class.
std::string ObjectName(const hprof::HeapGraph& heap,
                       const hprof::DumpFile& file,
                       uint32_t object);

// `text`: an address, or a class, whose object that retains most is meant.
Result<uint32_t> FindObject(const Examined& examined, const std::string& text);

// Why an object is still there: the shortest way to it from a root.
struct HoldingPath {
  struct Step {
    uint32_t object;
    std::string reference;  // to it, from the one before: ".next"
  };

  std::string root;  // "ROOT_JNI_GLOBAL"; empty: nothing holds the object
  std::vector<Step> steps;
};

std::vector<HoldingPath> HoldingPaths(const OpenedDump& opened,
                                      const Examined& examined,
                                      const std::vector<uint32_t>& objects);

}  // namespace heapprofd
