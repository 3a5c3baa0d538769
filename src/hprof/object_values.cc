#include "hprof/object_values.h"

#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "hprof/fields/field_layout.h"

namespace heapprofd::hprof {
namespace {

constexpr size_t kMaxValueName = 1024;  // bytes

// The shortest text that is read back as this number.
template <typename Real>
std::string RealText(Real number) {
  constexpr size_t kMaxLength = 32;
  std::array<char, kMaxLength> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), error == std::errc() ? end : text.data()};
}

// A visible ASCII character stands for itself, too.
std::string CharacterText(uint16_t character) {
  constexpr uint16_t kFirstVisible = 0x21;
  constexpr uint16_t kLastVisible = 0x7e;
  std::string text = std::to_string(character);
  if (character >= kFirstVisible && character <= kLastVisible)
    text += std::string(" '") + static_cast<char>(character) + "'";
  return text;
}

// `at` has as many bytes as the type needs.
std::string NumberText(uint8_t type, const uint8_t* at) {
  switch (type) {
    case kBoolean:
      return *at != 0 ? "true" : "false";
    case kByte:
      return std::to_string(static_cast<int8_t>(*at));
    case kChar:
      return CharacterText(Get16(at));
    case kShort:
      return std::to_string(static_cast<int16_t>(Get16(at)));
    case kInt:
      return std::to_string(static_cast<int32_t>(Get32(at)));
    case kLong:
      return std::to_string(static_cast<int64_t>(Get64(at)));
    case kFloat:
      return RealText(std::bit_cast<float>(Get32(at)));
    case kDouble:
      return RealText(std::bit_cast<double>(Get64(at)));
    default:
      return "";
  }
}

class ValueReader : public HeapVisitor {
 public:
  ValueReader(const DumpFile& file, const ClassTable& classes, uint64_t id, size_t most)
      : file_(file),
        classes_(classes),
        layouts_(file, classes),
        id_bytes_(file.id_bytes()),
        id_(id),
        most_(most) {}

  void Class(const ClassRecord& record) {
    if (!Begin(record.id))
      return;
    ForEachStatic(record, id_bytes_,
                  [&](const uint8_t* field, uint8_t type, const uint8_t* value) {
                    if (HasRoom())
                      Add(NameOf(record.id, field), type, value);
                  });
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    if (row == UINT32_MAX || !Begin(record.id))
      return;
    layouts_.ForEachField(
        row, record.byte_count,
        [&](uint32_t declaring, const uint8_t* field, uint8_t type, uint32_t offset) {
          const uint32_t bytes = ValueBytes(type, id_bytes_);
          if (uint64_t{offset} + bytes <= record.byte_count && HasRoom())
            Add(NameOf(classes_[declaring].id, field), type, record.values + offset);
        });
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    if (Begin(record.id))
      Elements(kObject, record.length, record.elements);
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    if (!Begin(record.id))
      return;
    found_->has_data = record.data != nullptr || record.length == 0;
    if (record.data != nullptr)
      Elements(record.type, record.length, record.data);
    found_->count = record.length;
  }

  std::optional<ObjectValues>& found() { return found_; }

 private:
  bool Begin(uint64_t id) {
    if (id != id_ || found_)
      return false;
    found_.emplace();
    return true;
  }

  // For one more, which is counted in any case.
  bool HasRoom() { return found_->count++ < most_; }

  std::string NameOf(uint64_t class_id, const uint8_t* field) const {
    const std::string_view own = file_.names().StringOf(GetId(field, id_bytes_));
    return file_.names().ClassName(class_id).substr(0, kMaxValueName) + "." +
           std::string(own.substr(0, kMaxValueName));
  }

  void Elements(uint8_t type, uint32_t length, const uint8_t* data) {
    const uint64_t bytes = ValueBytes(type, id_bytes_);
    for (uint32_t i = 0; i < length && i < most_; ++i)
      Add("[" + std::to_string(i) + "]", type, data + i * bytes);
    found_->count = length;
  }

  void Add(std::string name, uint8_t type, const uint8_t* value) {
    ObjectValue added{std::move(name), type, {}, 0};
    if (type == kObject)
      added.reference = GetId(value, id_bytes_);
    else
      added.text = NumberText(type, value);
    found_->values.push_back(std::move(added));
  }

  const DumpFile& file_;
  const ClassTable& classes_;
  const FieldLayouts layouts_;
  const uint32_t id_bytes_;
  const uint64_t id_;
  const size_t most_;
  std::optional<ObjectValues> found_;
};

}  // namespace

std::optional<ObjectValues> ValuesOf(const DumpFile& file,
                                     const HeapDump& dump,
                                     const ClassTable& classes,
                                     uint64_t id,
                                     size_t most) {
  ValueReader reader(file, classes, id, most);
  WalkDump(file, dump, reader);
  return std::move(reader.found());
}

const char* TypeName(uint8_t type) {
  constexpr std::array<const char*, kLong + 1> kNames = {
      "",      "",       "object", "",      "boolean", "char",
      "float", "double", "byte",   "short", "int",     "long"};
  return type < kNames.size() ? kNames[type] : "";
}

}  // namespace heapprofd::hprof
