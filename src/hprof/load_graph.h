// A heap dump as a graph of objects.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "hprof/census.h"
#include "hprof/fields/field_layout.h"
#include "object_graph/address_index.h"
#include "object_graph/object_graph.h"

namespace heapprofd::hprof {

struct HeapGraph {
  HeapCensus census;
  AddressIndex ids;
  // Types are the rows of census.classes and behind them the arrays of numbers. A root's
  // kind is its place in `roots`.
  ObjectGraph graph;
  std::vector<RootRecord> roots;
  uint64_t missing_references = 0;  // to ids that the dump has no object of
};

// What waits for its finalizer to run is a root of kind kRootFinalizing.
Result<HeapGraph> LoadGraph(const DumpFile& file,
                            const HeapDump& dump,
                            Holding holding = Holding::kSoft);

// The second half of it, with what TakeCensus has found. Bytes that have changed since
// are an error: kCorrupt.
Result<HeapGraph> LoadGraph(const DumpFile& file,
                            const HeapDump& dump,
                            HeapCensus census,
                            Column<uint64_t> ids,
                            Holding holding = Holding::kSoft);

// The types of its graph, from its census and its ids.
void AddTypes(const DumpFile& file, HeapGraph* heap);

// "ROOT_JNI_GLOBAL", for a tag.
const char* RootName(uint8_t tag);

// What the reference from the object with id `owner` to that with id `target` is called:
// ".next", "[12]", " static CACHE", "" when there is none of the kind.
struct NamedReference {
  uint64_t owner;
  uint64_t target;
  std::string name;
};

// Fills in the names.
void NameReferences(const DumpFile& file,
                    const HeapDump& dump,
                    const HeapCensus& census,
                    std::vector<NamedReference>* references);

}  // namespace heapprofd::hprof
