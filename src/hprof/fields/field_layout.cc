#include "hprof/fields/field_layout.h"

#include <algorithm>
#include <string>

namespace heapprofd::hprof {

FieldLayouts::FieldLayouts(const DumpFile& file,
                           const ClassTable& classes,
                           Holding holding)
    : file_(file), classes_(classes), id_bytes_(file.id_bytes()) {
  for (uint32_t row = 0; row < classes_.size(); ++row) {
    const std::string name = file_.names().ClassName(classes_[row].id);
    const bool is_soft = name == "java.lang.ref.SoftReference";
    const bool is_weaker = name == "java.lang.ref.WeakReference" ||
                           name == "java.lang.ref.PhantomReference" ||
                           name == "java.lang.ref.FinalReference" ||
                           name == "java.lang.ref.FinalizerReference";
    is_weak_.push_back((is_soft && holding == Holding::kStrong) ||
                       (is_weaker && holding != Holding::kWeak));
    is_reference_.push_back(name == "java.lang.ref.Reference");
  }
  first_.push_back(0);
  for (uint32_t row = 0; row < classes_.size(); ++row) {
    if (classes_[row].instances > 0)
      Add(row);
    first_.push_back(offsets_.size());
  }
}

void FieldLayouts::Add(uint32_t row) {
  const std::vector<uint32_t> rows = classes_.Ancestry(row);
  const bool is_weak =
      std::any_of(rows.begin(), rows.end(), [this](uint32_t at) { return is_weak_[at]; });
  ForEachField(row, classes_[row].most_bytes,
               [&](uint32_t at, const uint8_t* field, uint8_t type, uint32_t offset) {
                 const bool is_weak_field =
                     is_weak && is_reference_[at] &&
                     file_.names().StringOf(GetId(field, id_bytes_)) == "referent";
                 if (type == kObject && !is_weak_field)
                   offsets_.push_back(offset);
               });
}

void FieldLayouts::FindFields(uint32_t row,
                              std::initializer_list<WantedField> wanted) const {
  ForEachField(row, classes_[row].most_bytes,
               [&](uint32_t, const uint8_t* field, uint8_t type, uint32_t offset) {
                 const std::string_view name =
                     file_.names().StringOf(GetId(field, id_bytes_));
                 for (const WantedField& one : wanted) {
                   if (name == one.name && type == one.type)
                     *one.offset = offset;
                 }
               });
}

}  // namespace heapprofd::hprof
