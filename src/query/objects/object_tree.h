// A Java heap as a tree of objects: what hangs on what. Two trees are of interest: by
// shortest paths of references from the roots, and by dominators.
#pragma once

#include <cstdint>

#include "base/column.h"
#include "base/status.h"
#include "query/sqlite/database.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// Of what can be reached. Objects are rows of heap_graph_object.
struct ObjectTree {
  Column<uint32_t> order;   // objects, each behind its parent
  Column<uint32_t> parent;  // by object, from the graph's first one on; kNoId: a root
};

// `graph` is a row of heap_graph. kUnavailable when cancelled.

// Roots are taken by the names of their classes, references by the objects they lead to:
// of several paths of one length the first one counts.
Result<ObjectTree> ShortestPathTree(const ImportedTrace& trace,
                                    uint32_t graph,
                                    const CancelFlag& cancelled);

Result<ObjectTree> DominatorObjectTree(const ImportedTrace& trace,
                                       uint32_t graph,
                                       const CancelFlag& cancelled);

// By its name: what objects of java.lang.ref refer to.
bool IsReferent(const ImportedTrace& trace, uint32_t reference);

// Weak, finalizer and phantom references hold nothing. Both are rows.
bool IsWeakReference(const ImportedTrace& trace, uint32_t owner, uint32_t reference);

}  // namespace heapprofd
