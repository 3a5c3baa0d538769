#include "hprof/graph_contents.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "hprof/fields/field_layout.h"
#include "object_graph/object_graph.h"

namespace heapprofd::hprof {
namespace {

constexpr size_t kMaxText = size_t{64} << 20;   // characters
constexpr size_t kMaxFields = size_t{1} << 22;  // of all classes

// nullopt: it is no number.
std::optional<NumberType> NumberTypeOf(uint8_t type) {
  switch (type) {
    case kBoolean:
      return NumberType::kBoolean;
    case kByte:
      return NumberType::kByte;
    case kChar:
      return NumberType::kChar;
    case kShort:
      return NumberType::kShort;
    case kInt:
      return NumberType::kInt;
    case kLong:
      return NumberType::kLong;
    case kFloat:
      return NumberType::kFloat;
    case kDouble:
      return NumberType::kDouble;
    default:
      return std::nullopt;
  }
}

Number NumberAt(NumberType type, const uint8_t* at) {
  switch (type) {
    case NumberType::kBoolean:
      return {*at != 0};
    case NumberType::kByte:
      return {static_cast<int8_t>(*at)};
    case NumberType::kChar:
      return {Get16(at)};
    case NumberType::kShort:
      return {static_cast<int16_t>(Get16(at))};
    case NumberType::kInt:
      return {static_cast<int32_t>(Get32(at))};
    case NumberType::kLong:
      return {static_cast<int64_t>(Get64(at))};
    case NumberType::kFloat:
      return {0, std::bit_cast<float>(Get32(at))};
    case NumberType::kDouble:
      return {0, std::bit_cast<double>(Get64(at))};
  }
  return {};
}

// What one sub-record is.
struct OneRecord : HeapVisitor {
  void Instance(const InstanceRecord& record) { instance = record; }

  void PrimitiveArray(const PrimitiveArrayRecord& record) { array = record; }

  std::optional<InstanceRecord> instance;
  std::optional<PrimitiveArrayRecord> array;
};

}  // namespace

// Of each object the first sub-record, as a dump may have it several times.
class GraphContents::Finder : public HeapVisitor {
 public:
  explicit Finder(GraphContents* to)
      : to_(*to),
        id_bytes_(to->file_.id_bytes()),
        is_known_(to->rows_.object_count, false) {}

  void Class(const ClassRecord& record) {
    const uint32_t object = Find(record.id);
    if (object == kNoObject)
      return;
    const uint32_t type = to_.TypeRowOf(object);
    if (type < to_.classes_.size() + kBasicTypeCount || type >= to_.fields_.size())
      return;
    ForEachStatic(
        record, id_bytes_, [&](const uint8_t* field, uint8_t basic, const uint8_t*) {
          if (const auto number = NumberTypeOf(basic))
            to_.fields_[type].push_back({field, FieldNames::kNoRow, kStatic, *number});
        });
  }

  void Instance(const InstanceRecord& record) {
    Place(record.id, record.values - InstanceBytes(id_bytes_));
  }

  void ObjectArray(const ObjectArrayRecord& record) { Find(record.id); }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    if (record.data != nullptr)
      return Place(record.id, record.data - ArrayBytes(id_bytes_));
    const uint32_t object = Find(record.id);
    if (object != kNoObject)
      to_.no_data_.emplace(object, record);
  }

 private:
  // Of sub-records, with the tag, in front of values.
  static constexpr uint32_t InstanceBytes(uint32_t id_bytes) { return 2 * id_bytes + 9; }

  static constexpr uint32_t ArrayBytes(uint32_t id_bytes) { return id_bytes + 10; }

  // The object, when it was not there before.
  uint32_t Find(uint64_t id) {
    // Most stand in the file as in memory.
    const uint64_t* const ids =
        to_.tables_.objects.address.begin() + to_.rows_.first_object;
    const bool is_next = next_ < to_.rows_.object_count && ids[next_] == id;
    const uint32_t object = is_next ? next_ : to_.ObjectOf(id);
    if (object == kNoObject || is_known_[object])
      return kNoObject;
    is_known_[object] = true;
    next_ = object + 1;
    return object;
  }

  void Place(uint64_t id, const uint8_t* at) {
    const uint32_t object = Find(id);
    if (object != kNoObject)
      to_.places_[object] = at;
  }

  GraphContents& to_;
  const uint32_t id_bytes_;
  std::vector<bool> is_known_;  // by object
  uint32_t next_ = 0;
};

GraphContents::GraphContents(std::shared_ptr<const KeptDump> kept,
                             const HeapDump& dump,
                             ClassTable classes,
                             const HeapGraphTables& tables,
                             const GraphRows& rows)
    : kept_(std::move(kept)),
      file_(kept_->file),
      dump_(dump),
      classes_(std::move(classes)),
      tables_(tables),
      rows_(rows),
      names_(file_, classes_) {}

Status GraphContents::Load() {
  if (is_loaded_)
    return {};
  is_loaded_ = true;
  fields_.resize(rows_.class_count);
  HPD_TRY(FindFieldsOfInstances());
  places_.resize(rows_.object_count, nullptr);
  Finder finder(this);
  WalkDump(file_, dump_, finder);
  CountFields();
  return Check();
}

Status GraphContents::Check() const {
  return kept_->input ? kept_->input->Check() : Status();
}

// Of each class with those that it inherits, which in a hostile file are many.
Status GraphContents::FindFieldsOfInstances() {
  const FieldLayouts layouts(file_, classes_);
  size_t left = kMaxFields;
  for (uint32_t row = 0; row < classes_.size(); ++row) {
    if (classes_[row].instances == 0)
      continue;
    layouts.ForEachField(
        row, classes_[row].most_bytes,
        [&](uint32_t declaring, const uint8_t* field, uint8_t type, uint32_t offset) {
          const auto number = NumberTypeOf(type);
          if (!number || left == 0)
            return;
          --left;
          fields_[row].push_back({field, declaring, offset, *number});
        });
    if (left == 0)
      return Status(StatusCode::kUnavailable,
                    "cannot read the values of fields: the classes have more than " +
                        std::to_string(kMaxFields) +
                        " with those that they inherit; heap_profile hprof object shows "
                        "those of one object");
  }
  string_row_ = RowOfStringClass(file_, classes_);
  if (string_row_ != kNoRow)
    string_fields_ = StringFieldsOf(layouts, string_row_);
  return {};
}

void GraphContents::CountFields() {
  std::vector<uint32_t> fields_of;
  for (const std::vector<NumberField>& fields : fields_)
    fields_of.push_back(static_cast<uint32_t>(fields.size()));
  numbers_.emplace(tables_.objects.type, rows_.first_object, rows_.object_count,
                   rows_.first_class, std::move(fields_of));
}

GraphContents::Place GraphContents::PlaceOf(uint64_t field) const {
  const auto [object, number] = numbers_->OwnerOf(field);
  return {object, &fields_[TypeRowOf(object)][number]};
}

std::string_view GraphContents::NameOf(uint64_t field) const {
  const NumberField& of = *PlaceOf(field).field;
  return names_.Of(of.field, of.declaring);
}

NumberType GraphContents::TypeOf(uint64_t field) const {
  return PlaceOf(field).field->type;
}

std::optional<Number> GraphContents::ValueOf(uint64_t field) const {
  const auto [object, of] = PlaceOf(field);
  if (of->offset == kStatic)
    return NumberAt(of->type, of->field + file_.id_bytes() + 1);
  const std::optional<InstanceRecord> record = RecordOfInstance(object);
  if (!record || uint64_t{of->offset} + heapprofd::BytesOf(of->type) > record->byte_count)
    return std::nullopt;
  return NumberAt(of->type, record->values + of->offset);
}

std::optional<std::string> GraphContents::TextOf(uint32_t object) const {
  if (string_row_ == kNoRow || TypeRowOf(object) != string_row_)
    return std::nullopt;
  const std::optional<InstanceRecord> record = RecordOfInstance(object);
  if (!record)
    return std::nullopt;
  const StringCharacters characters =
      CharactersOf(*record, string_fields_, file_.id_bytes());
  const uint32_t array = characters.array == 0 ? kNoObject : ObjectOf(characters.array);
  const std::optional<PrimitiveArrayRecord> data =
      array == kNoObject ? std::nullopt : RecordOfArray(array);
  if (!data)
    return std::nullopt;
  const StringBytes bytes = hprof::BytesOf(characters, *data);
  return bytes.data == nullptr ? std::nullopt
                               : std::optional(hprof::TextOf(bytes, kMaxText));
}

std::optional<NumberArray> GraphContents::ArrayOf(uint32_t object) const {
  const std::optional<PrimitiveArrayRecord> record = RecordOfArray(object);
  const std::optional<NumberType> type =
      record ? NumberTypeOf(record->type) : std::nullopt;
  if (!type)
    return std::nullopt;
  return NumberArray{*type, record->length, record->data != nullptr};
}

std::string GraphContents::DataOf(uint32_t object) const {
  const std::optional<PrimitiveArrayRecord> record = RecordOfArray(object);
  if (!record || record->data == nullptr)
    return {};
  const size_t bytes = ValueBytes(record->type, 0);
  std::string data(reinterpret_cast<const char*>(record->data), record->length * bytes);
  for (size_t at = 0; bytes > 1 && at < data.size(); at += bytes)
    std::reverse(data.begin() + static_cast<ptrdiff_t>(at),
                 data.begin() + static_cast<ptrdiff_t>(at + bytes));
  return data;
}

uint32_t GraphContents::ObjectOf(uint64_t id) const {
  const uint64_t* const ids = tables_.objects.address.begin() + rows_.first_object;
  const uint64_t* const end = ids + rows_.object_count;
  const uint64_t* const found = std::lower_bound(ids, end, id);
  return found == end || *found != id ? kNoObject : static_cast<uint32_t>(found - ids);
}

template <typename Visitor>
void GraphContents::Visit(uint32_t object, Visitor& visitor) const {
  const uint8_t* const at = places_[object];
  if (at != nullptr)
    WalkHeap({at, at + 1, dump_.ranges.front().file_end, false}, file_.id_bytes(),
             visitor);
}

std::optional<PrimitiveArrayRecord> GraphContents::RecordOfArray(uint32_t object) const {
  const auto without_data = no_data_.find(object);
  if (without_data != no_data_.end())
    return without_data->second;
  OneRecord record;
  Visit(object, record);
  return record.array;
}

std::optional<InstanceRecord> GraphContents::RecordOfInstance(uint32_t object) const {
  OneRecord record;
  Visit(object, record);
  return record.instance;
}

}  // namespace heapprofd::hprof
