// A Java heap graph as a call tree: every reachable object hangs on a shortest path of
// references from a root, and objects with the same path of class names are one node.
#pragma once

#include "base/status.h"
#include "query/database.h"
#include "query/flame_tree.h"
#include "trace/imported_trace.h"

namespace heapprofd {

// `graph` is a row of heap_graph. A root's name is "Class [ROOT_TYPE]"; memory outside
// the Java heap that an object owns is a child "[native] Class". Weak, finalizer and
// phantom references hold nothing. kUnavailable when cancelled.
Result<FlameTree> BuildGraphTree(const ImportedTrace& trace,
                                 uint32_t graph,
                                 const CancelFlag& cancelled);

}  // namespace heapprofd
