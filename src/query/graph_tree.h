// A Java heap graph as a call tree: objects with the same path of class names in a tree
// of objects are one node.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "query/flame_tree.h"
#include "query/objects/object_tree.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// Memory outside the Java heap that an object owns is a child "[native] Class" in both.
enum class GraphNaming : uint8_t {
  kFlamegraph,  // a root's name is "Class [ROOT_TYPE]"
  kClasses,     // names of classes only, also of types of heaps; an object that hangs on
                // one of its class is in that one's node
};

enum class GraphHierarchy : uint8_t { kShortestPaths, kDominators };

struct GraphTreeOptions {
  GraphHierarchy hierarchy = GraphHierarchy::kShortestPaths;
  GraphNaming naming = GraphNaming::kFlamegraph;
  // What is beyond, or deeper, counts for the node above it. Roots are always there.
  size_t max_nodes = SIZE_MAX;
  uint32_t max_depth = UINT32_MAX;
};

struct GraphTree {
  // Of a node those first whose first object comes first, each with all that is below.
  FlameTree tree;
  // By node.
  Column<uint32_t> graphs;
  Column<HeapRootType> root_types;  // kNone further down than roots
  Column<HeapType> heap_types;      // for kClasses only
  Column<bool> is_native;
  Column<uint64_t> path_hashes;  // the same for a path of names in every trace
  bool is_folded = false;        // there were more, or deeper, nodes than are wanted
};

// `graphs` are rows of heap_graph; each has its own roots. kUnavailable when cancelled.
Result<GraphTree> BuildGraphTree(const ImportedTrace& trace,
                                 std::span<const uint32_t> graphs,
                                 const GraphTreeOptions& options,
                                 const CancelFlag& cancelled);

}  // namespace heapprofd
