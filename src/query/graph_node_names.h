// The names of the nodes of a graph's tree: each made once for all objects that have it,
// for the names of classes may be long, and hashed once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

class GraphNodeNames {
 public:
  // `trace` outlives it.
  explicit GraphNodeNames(const ImportedTrace& trace) : trace_(trace) {}

  // By the row of a class. As it is shown.
  StringId OfClass(uint32_t type);

  // "Class [ROOT_TYPE]"
  StringId OfRoot(StringId class_name, HeapRootType type);

  // "[native] Class"
  StringId OfNative(StringId owner_name);

  // The same for a name in every trace.
  uint64_t HashOf(StringId name);

  // With all names that were made so far and will be.
  std::shared_ptr<StringPool> pool() const { return names_; }

 private:
  const ImportedTrace& trace_;
  std::shared_ptr<StringPool> names_ = std::make_shared<StringPool>();
  std::vector<StringId> class_names_;  // by class, in names_; kNoId: not asked for yet
  std::map<std::pair<StringId, HeapRootType>, StringId> root_names_;
  std::map<StringId, StringId> native_names_;
  std::map<StringId, uint64_t> name_hashes_;
};

}  // namespace heapprofd
