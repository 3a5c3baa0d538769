// Where the fields of a class's instances are: a dump has the values of the own ones
// first, then those of the superclass, and so on.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "hprof/class_table.h"
#include "hprof/dump_file.h"

namespace heapprofd::hprof {

// Which references of java.lang.ref hold what they refer to: none; soft ones, as long as
// there is memory; those of all kinds, which keep nothing, but tell who knows an object.
enum class Holding : uint8_t { kStrong, kSoft, kWeak };

class FieldLayouts {
 public:
  // Both must outlive this.
  FieldLayouts(const DumpFile& file,
               const ClassTable& classes,
               Holding holding = Holding::kSoft);

  // Offsets of the references that hold what they refer to.
  std::span<const uint32_t> HoldingReferences(uint32_t row) const {
    return {offsets_.data() + first_[row], first_[row + 1] - first_[row]};
  }

  // use(declaring row, field, type, offset) for the fields of an instance whose values
  // have `byte_count` bytes; a field is its (name, type).
  template <typename Use>
  void ForEachField(uint32_t row, uint32_t byte_count, Use use) const {
    uint64_t offset = 0;
    for (const uint32_t at : classes_.Ancestry(row)) {
      const HeapClass& type = classes_[at];
      for (uint32_t i = 0; i < type.field_count; ++i) {
        if (offset >= byte_count)
          return;
        const uint8_t* const field = type.fields + size_t{i} * (id_bytes_ + 1);
        use(at, field, field[id_bytes_], static_cast<uint32_t>(offset));
        offset += ValueBytes(field[id_bytes_], id_bytes_);
      }
    }
  }

  struct WantedField {
    std::string_view name;
    uint8_t type;
    uint32_t* offset;  // stays as it is when no instance has the field
  };

  // Where instances of the class at `row` have fields of these names. Of two of a name
  // that of the superclass counts.
  void FindFields(uint32_t row, std::initializer_list<WantedField> wanted) const;

 private:
  void Add(uint32_t row);

  const DumpFile& file_;
  const ClassTable& classes_;
  std::vector<bool> is_weak_;       // by row: the class itself, not its ancestors
  std::vector<bool> is_reference_;  // by row: java.lang.ref.Reference
  const uint32_t id_bytes_;
  std::vector<uint32_t> offsets_;
  std::vector<size_t> first_;  // by row, and one behind
};

}  // namespace heapprofd::hprof
