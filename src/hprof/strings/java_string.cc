#include "hprof/strings/java_string.h"

#include <algorithm>

namespace heapprofd::hprof {
namespace {

bool Has(const InstanceRecord& record, uint32_t offset, uint32_t bytes) {
  return offset != StringFields::kNone && uint64_t{offset} + bytes <= record.byte_count;
}

uint32_t WidthOf(const StringBytes& bytes) {
  return bytes.type == kChar || bytes.coder == kUtf16Coder ? 2 : 1;
}

uint32_t UnitAt(const StringBytes& bytes, uint64_t index) {
  const uint8_t* const at = bytes.data + index * WidthOf(bytes);
  if (bytes.type == kChar)
    return Get16(at);
  // HotSpot keeps UTF-16 in bytes of the machine's order: all it runs on are little.
  return bytes.coder == kUtf16Coder ? at[0] | uint32_t{at[1]} << 8 : at[0];
}

void AppendUtf8(uint32_t character, std::string* text) {
  const auto add = [text](uint32_t byte) { *text += static_cast<char>(byte); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0 | character >> 6);
    add(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    add(0xE0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  } else {
    add(0xF0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3F));
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  }
}

}  // namespace

bool IsStringClass(const DumpFile& file, const ClassTable& classes, uint32_t row) {
  return file.names().ClassName(classes[row].id) == "java.lang.String";
}

uint32_t RowOfStringClass(const DumpFile& file, const ClassTable& classes) {
  for (uint32_t row = 0; row < classes.size(); ++row) {
    if (classes[row].instances > 0 && IsStringClass(file, classes, row))
      return row;
  }
  return UINT32_MAX;
}

StringFields StringFieldsOf(const FieldLayouts& layouts, uint32_t row) {
  StringFields fields;
  layouts.FindFields(row, {{"value", kObject, &fields.value},
                           {"coder", kByte, &fields.coder},
                           {"offset", kInt, &fields.offset},
                           {"count", kInt, &fields.count}});
  return fields;
}

StringCharacters CharactersOf(const InstanceRecord& record,
                              const StringFields& fields,
                              uint32_t id_bytes) {
  StringCharacters characters;
  if (Has(record, fields.value, id_bytes))
    characters.array = GetId(record.values + fields.value, id_bytes);
  if (Has(record, fields.coder, 1))
    characters.coder = record.values[fields.coder];
  if (Has(record, fields.offset, 4) && Has(record, fields.count, 4)) {
    characters.offset = Get32(record.values + fields.offset);
    characters.count = Get32(record.values + fields.count);
  }
  return characters;
}

uint32_t StringBytes::length() const {
  return bytes / WidthOf(*this);
}

StringBytes BytesOf(const StringCharacters& characters,
                    const PrimitiveArrayRecord& record) {
  StringBytes found;
  if (record.data == nullptr || (record.type != kByte && record.type != kChar))
    return found;
  const uint32_t width = ValueBytes(record.type, 0);
  const uint32_t offset = std::min(characters.offset, record.length);
  const uint32_t count = std::min(characters.count, record.length - offset);
  found.data = record.data + uint64_t{offset} * width;
  found.bytes = count * width;
  found.type = record.type;
  found.coder = characters.coder;
  return found;
}

std::string TextOf(const StringBytes& bytes, size_t most) {
  std::string text;
  const uint64_t units = std::min<uint64_t>(bytes.length(), most);
  for (uint64_t i = 0; i < units; ++i) {
    const uint32_t unit = UnitAt(bytes, i);
    const bool is_surrogate = unit >= 0xD800 && unit < 0xE000;
    const uint32_t next = is_surrogate && i + 1 < units ? UnitAt(bytes, i + 1) : 0;
    if (is_surrogate && unit < 0xDC00 && next >= 0xDC00 && next < 0xE000) {
      AppendUtf8(0x10000 + ((unit - 0xD800) << 10) + (next - 0xDC00), &text);
      ++i;
    } else {
      AppendUtf8(is_surrogate ? 0xFFFD : unit, &text);
    }
  }
  return text;
}

}  // namespace heapprofd::hprof
