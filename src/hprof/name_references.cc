// How references are called needs the dump itself: a graph of millions of objects has no
// place for names.
#include <array>
#include <unordered_map>

#include "base/random_seed.h"
#include "base/row_index.h"
#include "hprof/fields/field_layout.h"
#include "hprof/load_graph.h"

namespace heapprofd::hprof {
namespace {

class ReferenceNamer : public HeapVisitor {
 public:
  ReferenceNamer(const DumpFile& file,
                 const HeapCensus& census,
                 std::vector<NamedReference>* references)
      : file_(file),
        id_bytes_(file.id_bytes()),
        classes_(census.classes),
        fields_(file, census.classes) {
    for (NamedReference& reference : *references) {
      by_owner_.emplace(reference.owner, &reference);
      is_wanted_[SlotOf(reference.owner)] = true;
    }
  }

  void Class(const ClassRecord& record) {
    ForEachOf(record.id, [&](NamedReference* reference) {
      if (reference->target == record.loader)
        reference->name = ".<class loader>";
      if (reference->target == record.super)
        reference->name = ".<superclass>";
      ForEachStatic(record, id_bytes_,
                    [&](const uint8_t* field, uint8_t type, const uint8_t* value) {
                      if (type == kObject && GetId(value, id_bytes_) == reference->target)
                        reference->name = ".static " + NameAt(field);
                    });
    });
  }

  void Instance(const InstanceRecord& record) {
    ForEachOf(record.id, [&](NamedReference* reference) {
      const uint32_t row = classes_.Find(record.class_id);
      if (reference->target == record.class_id)
        reference->name = ".<class>";
      fields_.ForEachField(
          row, record.byte_count,
          [&](uint32_t, const uint8_t* field, uint8_t type, uint32_t offset) {
            if (type == kObject && offset + id_bytes_ <= record.byte_count &&
                GetId(record.values + offset, id_bytes_) == reference->target)
              reference->name = "." + NameAt(field);
          });
    });
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    ForEachOf(record.id, [&](NamedReference* reference) {
      for (uint32_t i = 0; i < record.length; ++i) {
        if (GetId(record.elements + uint64_t{i} * id_bytes_, id_bytes_) ==
            reference->target) {
          reference->name = "[" + std::to_string(i) + "]";
          return;
        }
      }
    });
  }

 private:
  static constexpr size_t kSlots = 4096;

  // Ids are chosen by whoever made the file.
  struct Hash {
    uint64_t secret;

    size_t operator()(uint64_t id) const { return Mix(id ^ secret); }
  };

  static size_t SlotOf(uint64_t id) { return (id >> 3 ^ id >> 15) % kSlots; }

  template <typename Use>
  void ForEachOf(uint64_t owner, Use use) {
    if (!is_wanted_[SlotOf(owner)])
      return;
    const auto [begin, end] = by_owner_.equal_range(owner);
    for (auto it = begin; it != end; ++it)
      use(it->second);
  }

  std::string NameAt(const uint8_t* field) const {
    return std::string(file_.names().StringOf(GetId(field, id_bytes_)));
  }

  const DumpFile& file_;
  const uint32_t id_bytes_;
  const ClassTable& classes_;
  const FieldLayouts fields_;
  std::unordered_multimap<uint64_t, NamedReference*, Hash> by_owner_{0,
                                                                     Hash{RandomSeed()}};
  std::array<bool, kSlots> is_wanted_{};
};

}  // namespace

void NameReferences(const DumpFile& file,
                    const HeapDump& dump,
                    const HeapCensus& census,
                    std::vector<NamedReference>* references) {
  ReferenceNamer namer(file, census, references);
  WalkDump(file, dump, namer);
}

}  // namespace heapprofd::hprof
