// An examined heap in a file, and back: index_format.h.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "hprof/index/index_key.h"
#include "hprof/load_graph.h"
#include "hprof/mapped_input.h"
#include "object_graph/retention.h"

namespace heapprofd::hprof {

// Of a whole graph of a dump that is not damaged. Takes 15 bytes of memory for each
// object meanwhile.
Status WriteIndex(const IndexKey& key,
                  const DumpFile& file,
                  const HeapGraph& heap,
                  const Retention& retention,
                  const std::function<Status(std::string_view)>& write);

// kNotFound: the index has another key. kCorrupt: it is no index. `bytes`: of the dump's
// file. The graph has no references, and no sums over arrays in its census; its pages are
// those of the index.
Result<HeapGraph> ReadIndex(std::shared_ptr<const MappedInput> index,
                            const IndexKey& key,
                            const DumpFile& file,
                            std::string_view bytes);

}  // namespace heapprofd::hprof
