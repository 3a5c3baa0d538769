// A heap as a graph of objects of which it is known who dominates whom: what all
// views need that are about single objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/hprof/loaded_heap.h"
#include "cli/hprof/opened/opened_dump.h"
#include "object_graph/retention.h"

namespace heapprofd {

struct Examined {
  std::unique_ptr<LoadedHeap> heap;
  Retention retention;
};

Result<Examined> Examine(OpenedDump* opened);

std::string NameOf(const LoadedHeap& heap, uint32_t object);

// By type, whether it has this name.
std::vector<bool> TypesNamed(const ObjectGraph& graph, const std::string& name);

// `text`: a handle, or a class, whose object that retains most is meant, or the class
// itself, named "class C" or "java.lang.Class<C>".
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

// How the steps of ways through the graph are called.
std::vector<HoldingPath> NameSteps(const Examined& examined,
                                   const std::vector<std::vector<uint32_t>>& ways);

std::vector<HoldingPath> HoldingPaths(const Examined& examined,
                                      const std::vector<uint32_t>& objects);

}  // namespace heapprofd
