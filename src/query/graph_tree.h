// A Java heap graph as a call tree: every reachable object hangs on a shortest path of
// references from a root, and objects with the same path of class names are one node.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "query/flame_tree.h"
#include "query/sqlite/database.h"
#include "tables/imported_trace.h"

namespace heapprofd {

enum class GraphNaming : uint8_t {
  kFlamegraph,  // a root's name is "Class [ROOT_TYPE]"; memory outside the Java heap that
                // an object owns is a child "[native] Class"
  kClasses,     // names of classes only, and no native memory
};

struct GraphTree {
  FlameTree tree;
  // By node. Types of the roots; kNone further down.
  Column<uint32_t> graphs;
  Column<HeapRootType> root_types;
};

// `graphs` are rows of heap_graph; each has its own roots. kUnavailable when cancelled.
Result<GraphTree> BuildGraphTree(const ImportedTrace& trace,
                                 std::span<const uint32_t> graphs,
                                 GraphNaming naming,
                                 const CancelFlag& cancelled);

// Weak, finalizer and phantom references hold nothing. Both are rows.
bool IsWeakReference(const ImportedTrace& trace, uint32_t owner, uint32_t reference);

}  // namespace heapprofd
