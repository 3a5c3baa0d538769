#include "hprof/duplicate_strings.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/random_seed.h"
#include "base/row_index.h"
#include "hprof/field_layout.h"
#include "object_graph/address_index.h"

namespace heapprofd::hprof {
namespace {

constexpr uint8_t kUtf16 = 1;  // of String.coder

struct StringFields {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t value = kNone;  // offsets
  uint32_t coder = kNone;
  uint32_t offset = kNone;
  uint32_t count = kNone;
};

// What strings say of an array with characters.
struct Characters {
  uint64_t array = 0;
  uint32_t offset = 0;          // characters
  uint32_t count = UINT32_MAX;  // all of the array
  uint8_t coder = 0;
};

// The array's content, once it was found.
struct Text {
  const uint8_t* data = nullptr;
  uint32_t bytes = 0;
  uint64_t array_bytes = 0;  // in the virtual machine
  uint8_t type = 0;          // of the array's elements
  uint8_t coder = 0;
  uint32_t strings = 0;
  uint64_t hash = 0;
};

uint32_t RowOfClass(const DumpFile& file, const ClassTable& classes) {
  for (uint32_t row = 0; row < classes.size(); ++row) {
    if (classes[row].instances > 0 &&
        file.ClassName(classes[row].id) == "java.lang.String")
      return row;
  }
  return UINT32_MAX;
}

StringFields FieldsOf(const DumpFile& file, const ClassTable& classes, uint32_t row) {
  StringFields fields;
  FieldLayouts(file, classes)
      .ForEachField(row, classes[row].most_bytes,
                    [&](uint32_t, const uint8_t* field, uint8_t type, uint32_t offset) {
                      const std::string_view name =
                          file.StringOf(GetId(field, file.id_bytes()));
                      if (name == "value" && type == kObject)
                        fields.value = offset;
                      else if (name == "coder" && type == kByte)
                        fields.coder = offset;
                      else if (name == "offset" && type == kInt)
                        fields.offset = offset;
                      else if (name == "count" && type == kInt)
                        fields.count = offset;
                    });
  return fields;
}

class StringCollector : public HeapVisitor {
 public:
  StringCollector(uint32_t id_bytes, uint64_t class_id, const StringFields& fields)
      : id_bytes_(id_bytes), class_id_(class_id), fields_(fields) {}

  void Instance(const InstanceRecord& record) {
    if (record.class_id != class_id_ || !Has(record, fields_.value, id_bytes_))
      return;
    Characters characters;
    characters.array = GetId(record.values + fields_.value, id_bytes_);
    if (characters.array == 0)
      return;
    if (Has(record, fields_.coder, 1))
      characters.coder = record.values[fields_.coder];
    if (Has(record, fields_.offset, 4) && Has(record, fields_.count, 4)) {
      characters.offset = Get32(record.values + fields_.offset);
      characters.count = Get32(record.values + fields_.count);
    }
    strings_.push_back(characters);
  }

  // Sorted by array.
  Column<Characters>& Finish() {
    std::sort(strings_.begin(), strings_.end(),
              [](const Characters& a, const Characters& b) {
                return std::tie(a.array, a.offset, a.count) <
                       std::tie(b.array, b.offset, b.count);
              });
    return strings_;
  }

 private:
  static bool Has(const InstanceRecord& record, uint32_t offset, uint32_t bytes) {
    return offset != StringFields::kNone && uint64_t{offset} + bytes <= record.byte_count;
  }

  const uint32_t id_bytes_;
  const uint64_t class_id_;
  const StringFields fields_;
  Column<Characters> strings_;
};

class TextFinder : public HeapVisitor {
 public:
  TextFinder(const Column<Characters>& strings, const ObjectLayout& layout)
      : layout_(layout), ids_(IdsOf(strings)) {
    characters_.resize(ids_.size(), Characters());
    texts_.resize(ids_.size(), Text());
    for (const Characters& string : strings.span()) {
      const uint32_t array = ids_.Find(string.array);
      if (texts_[array].strings++ == 0)
        characters_[array] = string;
    }
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    if (record.data == nullptr || (record.type != kByte && record.type != kChar))
      return;
    const uint32_t array = ids_.Find(record.id);
    if (array == kNoObject || texts_[array].data != nullptr)
      return;
    const Characters& string = characters_[array];
    const uint32_t width = ValueBytes(record.type, 0);
    const uint32_t offset = std::min(string.offset, record.length);
    const uint32_t count = std::min(string.count, record.length - offset);
    Text& text = texts_[array];
    text.data = record.data + uint64_t{offset} * width;
    text.bytes = count * width;
    text.array_bytes = ArrayBytes(uint64_t{record.length} * width, layout_);
    text.type = record.type;
    text.coder = string.coder;
    text.hash = HashOf(text);
  }

  // Those that were found, equal ones side by side.
  Column<Text> Finish() {
    Column<Text> found;
    for (const Text& text : texts_.span()) {
      if (text.data != nullptr)
        found.push_back(text);
    }
    std::sort(found.begin(), found.end(), [](const Text& a, const Text& b) {
      return std::tie(a.hash, a.bytes) < std::tie(b.hash, b.bytes);
    });
    return found;
  }

 private:
  static Column<uint64_t> IdsOf(const Column<Characters>& strings) {
    Column<uint64_t> ids;
    for (const Characters& string : strings.span())
      ids.push_back(string.array);
    return ids;
  }

  uint64_t HashOf(const Text& text) const {
    uint64_t hash = secret_ ^ (uint64_t{text.type} << 8 | text.coder);
    uint32_t at = 0;
    for (; at + sizeof(uint64_t) <= text.bytes; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      memcpy(&word, text.data + at, sizeof(word));
      hash = Mix(hash ^ word) + secret_;
    }
    uint64_t word = 0;
    memcpy(&word, text.data + at, text.bytes - at);
    return Mix(hash ^ word);
  }

  const ObjectLayout& layout_;
  const AddressIndex ids_;
  const uint64_t secret_ = RandomSeed();
  Column<Characters> characters_;  // by array
  Column<Text> texts_;
};

// The file may be changed while it is read: what has an equal hash need not be equal.
bool AreEqual(const Text& a, const Text& b) {
  return a.hash == b.hash && a.bytes == b.bytes && a.type == b.type &&
         a.coder == b.coder && memcmp(a.data, b.data, a.bytes) == 0;
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

uint32_t WidthOf(const Text& text) {
  return text.type == kChar || text.coder == kUtf16 ? 2 : 1;
}

uint32_t UnitAt(const Text& text, uint64_t index) {
  const uint8_t* const at = text.data + index * WidthOf(text);
  if (text.type == kChar)
    return Get16(at);
  // HotSpot keeps UTF-16 in bytes of the machine's order: all it runs on are little.
  return text.coder == kUtf16 ? at[0] | uint32_t{at[1]} << 8 : at[0];
}

std::string ShownText(const Text& text) {
  std::string shown;
  const uint64_t units =
      std::min<uint64_t>(text.bytes / WidthOf(text), kMaxShownCharacters);
  for (uint64_t i = 0; i < units; ++i) {
    uint32_t unit = UnitAt(text, i);
    const bool is_surrogate = unit >= 0xD800 && unit < 0xE000;
    if (is_surrogate && unit < 0xDC00 && i + 1 < units) {
      const uint32_t low = UnitAt(text, i + 1);
      if (low >= 0xDC00 && low < 0xE000) {
        AppendUtf8(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), &shown);
        ++i;
        continue;
      }
    }
    AppendUtf8(is_surrogate ? 0xFFFD : unit, &shown);
  }
  return shown;
}

DuplicateString RowOf(const Column<Text>& texts,
                      size_t begin,
                      size_t end,
                      uint64_t string_bytes) {
  DuplicateString row;
  for (size_t i = begin; i < end; ++i) {
    row.strings += texts[i].strings;
    row.bytes += texts[i].array_bytes + texts[i].strings * string_bytes;
  }
  row.arrays = end - begin;
  row.length = texts[begin].bytes / WidthOf(texts[begin]);
  row.wasted = row.bytes - texts[begin].array_bytes - string_bytes;
  return row;
}

}  // namespace

DuplicateStrings FindDuplicateStrings(const DumpFile& file,
                                      const HeapDump& dump,
                                      const HeapCensus& census,
                                      size_t most) {
  DuplicateStrings found;
  const uint32_t row = RowOfClass(file, census.classes);
  if (row == UINT32_MAX)
    return found;
  StringCollector collector(file.id_bytes(), census.classes[row].id,
                            FieldsOf(file, census.classes, row));
  WalkDump(file, dump, collector);
  TextFinder finder(collector.Finish(), census.layout);
  WalkDump(file, dump, finder);
  const Column<Text> texts = finder.Finish();
  const uint64_t string_bytes = census.classes.InstanceBytes(row, census.layout);
  std::vector<std::pair<DuplicateString, size_t>> rows;  // and a place in `texts`
  for (size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
    end = begin + 1;
    while (end < texts.size() && AreEqual(texts[begin], texts[end]))
      ++end;
    DuplicateString of_text = RowOf(texts, begin, end, string_bytes);
    found.strings += of_text.strings;
    found.bytes += of_text.bytes;
    if (of_text.strings < 2)
      continue;
    found.wasted += of_text.wasted;
    rows.emplace_back(std::move(of_text), begin);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const auto& pair) { return pair.first.wasted; });
  found.texts = rows.size();
  rows.resize(std::min(rows.size(), most));
  for (auto& [of_text, place] : rows) {
    of_text.text = ShownText(texts[place]);
    found.rows.push_back(std::move(of_text));
  }
  return found;
}

}  // namespace heapprofd::hprof
