#include "query/graph_node_names.h"

#include <string>

#include "base/row_index.h"

namespace heapprofd {

StringId GraphNodeNames::OfClass(uint32_t type) {
  const auto& classes = trace_.heap_graph.classes;
  class_names_.resize(classes.size(), kNoId);
  if (class_names_[type] == kNoId)
    class_names_[type] = names_->Intern(trace_.Text(classes[type].ShownName()));
  return class_names_[type];
}

StringId GraphNodeNames::OfRoot(StringId class_name, HeapRootType type) {
  const auto [known, is_new] = root_names_.try_emplace({class_name, type}, kEmptyString);
  if (is_new)
    known->second =
        names_->Intern(std::string(names_->Get(class_name)) + " [" + NameOf(type) + "]");
  return known->second;
}

StringId GraphNodeNames::OfNative(StringId owner_name) {
  const auto [known, is_new] = native_names_.try_emplace(owner_name, kEmptyString);
  if (is_new)
    known->second = names_->Intern("[native] " + std::string(names_->Get(owner_name)));
  return known->second;
}

uint64_t GraphNodeNames::HashOf(StringId name) {
  const auto [known, is_new] = name_hashes_.try_emplace(name, 0);
  if (is_new) {
    for (const char c : names_->Get(name))
      known->second = Mix(known->second ^ static_cast<uint8_t>(c)) + 1;
  }
  return known->second;
}

}  // namespace heapprofd
