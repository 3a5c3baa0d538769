// What is in the objects of a dump, read from the dump itself when it is asked for. Kept
// in memory is where each object is in the file: 8 bytes, and which fields a class has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/column.h"
#include "hprof/census.h"
#include "hprof/dump_file.h"
#include "hprof/fields/field_names.h"
#include "hprof/fields/field_numbers.h"
#include "hprof/mapped_input.h"
#include "hprof/strings/java_string.h"
#include "tables/heap_graph.h"
#include "tables/object_contents.h"

namespace heapprofd::hprof {

// A dump that stays open for as long as somebody has this.
struct KeptDump {
  std::optional<MappedInput> input;  // nullopt: the bytes are somebody else's
  DumpFile file;
};

// Where a graph's rows are. The classes of instances and arrays come first, those of the
// objects that stand for classes are behind them.
struct GraphRows {
  uint32_t first_object = 0;
  uint32_t object_count = 0;
  uint32_t first_class = 0;
  uint32_t class_count = 0;
};

class GraphContents : public ObjectContents {
 public:
  // `tables` has the rows, and outlives this.
  GraphContents(std::shared_ptr<const KeptDump> kept,
                const HeapDump& dump,
                ClassTable classes,
                const HeapGraphTables& tables,
                const GraphRows& rows);

  Status Load() override;
  Status Check() const override;

  uint64_t field_count() const override { return numbers_ ? numbers_->count() : 0; }

  uint64_t FirstFieldOf(uint32_t object) const override {
    return numbers_ ? numbers_->FirstOf(object) : 0;
  }

  uint32_t OwnerOf(uint64_t field) const override {
    return numbers_->OwnerOf(field).first;
  }

  std::string_view NameOf(uint64_t field) const override;

  uint64_t unnamed_classes() const override { return names_.unnamed_classes(); }

  NumberType TypeOf(uint64_t field) const override;
  std::optional<Number> ValueOf(uint64_t field) const override;
  std::optional<std::string> TextOf(uint32_t object) const override;
  std::optional<NumberArray> ArrayOf(uint32_t object) const override;
  std::string DataOf(uint32_t object) const override;

 private:
  class Finder;

  // Of a class, and of all of its instances.
  struct NumberField {
    const uint8_t* field;  // its (name, type)
    uint32_t declaring;    // as FieldNames takes it
    uint32_t offset;       // in an instance; kStatic: the value follows the type
    NumberType type;       // as it was when it was found: bytes may change
  };

  struct Place {
    uint32_t object;
    const NumberField* field;
  };

  static constexpr uint32_t kNoRow = UINT32_MAX;
  static constexpr uint32_t kStatic = UINT32_MAX;

  Status FindFieldsOfInstances();
  void CountFields();
  Place PlaceOf(uint64_t field) const;

  // By a class's row among the graph's.
  uint32_t TypeRowOf(uint32_t object) const {
    return tables_.objects.type[rows_.first_object + object] - rows_.first_class;
  }

  // UINT32_MAX: there is none.
  uint32_t ObjectOf(uint64_t id) const;

  template <typename Visitor>
  void Visit(uint32_t object, Visitor& visitor) const;

  std::optional<PrimitiveArrayRecord> RecordOfArray(uint32_t object) const;
  std::optional<InstanceRecord> RecordOfInstance(uint32_t object) const;

  const std::shared_ptr<const KeptDump> kept_;
  const DumpFile& file_;
  const HeapDump& dump_;
  const ClassTable classes_;
  const HeapGraphTables& tables_;
  const GraphRows rows_;
  bool is_loaded_ = false;
  uint32_t string_row_ = kNoRow;
  StringFields string_fields_;
  std::vector<std::vector<NumberField>> fields_;  // by class
  Column<const uint8_t*> places_;  // of sub-records, by object; null: nothing is in it
  std::unordered_map<uint32_t, PrimitiveArrayRecord> no_data_;  // by object
  std::optional<FieldNumbers> numbers_;                         // when it is loaded
  mutable FieldNames names_;
};

}  // namespace heapprofd::hprof
