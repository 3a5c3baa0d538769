#include "hprof/fields/field_names.h"

#include <utility>

namespace heapprofd::hprof {

std::string_view FieldNames::Of(const uint8_t* field, uint32_t declaring) {
  const std::string_view own = file_.names().StringOf(GetId(field, file_.id_bytes()));
  if (declaring == kNoRow)
    return own;
  const auto known = names_.find(field);
  if (known != names_.end())
    return known->second;
  if (unnamed_.contains(declaring))
    return own;
  std::string name =
      file_.names().ClassName(classes_[declaring].id) + "." + std::string(own);
  if (name.size() > bytes_left_) {
    unnamed_.insert(declaring);
    return own;
  }
  bytes_left_ -= name.size();
  return names_.emplace(field, std::move(name)).first->second;
}

}  // namespace heapprofd::hprof
