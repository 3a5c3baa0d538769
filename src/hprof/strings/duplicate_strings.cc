#include "hprof/strings/duplicate_strings.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/random_seed.h"
#include "base/row_index.h"
#include "hprof/strings/java_string.h"
#include "object_graph/address_index.h"

namespace heapprofd::hprof {
namespace {

// The array's content, once it was found.
struct CharacterArray {
  StringBytes content;
  uint64_t array_bytes = 0;  // in the virtual machine
  uint32_t strings = 0;
  uint64_t hash = 0;
};

class StringCollector : public HeapVisitor {
 public:
  StringCollector(uint32_t id_bytes, uint64_t class_id, const StringFields& fields)
      : id_bytes_(id_bytes), class_id_(class_id), fields_(fields) {}

  void Instance(const InstanceRecord& record) {
    if (record.class_id != class_id_)
      return;
    const StringCharacters characters = CharactersOf(record, fields_, id_bytes_);
    if (characters.array != 0)
      strings_.push_back(characters);
  }

  // Sorted by array.
  Column<StringCharacters>& Finish() {
    std::sort(strings_.begin(), strings_.end(),
              [](const StringCharacters& a, const StringCharacters& b) {
                return std::tie(a.array, a.offset, a.count) <
                       std::tie(b.array, b.offset, b.count);
              });
    return strings_;
  }

 private:
  const uint32_t id_bytes_;
  const uint64_t class_id_;
  const StringFields fields_;
  Column<StringCharacters> strings_;
};

class TextFinder : public HeapVisitor {
 public:
  TextFinder(const Column<StringCharacters>& strings, const ObjectLayout& layout)
      : layout_(layout), ids_(IdsOf(strings)) {
    characters_.resize(ids_.size(), StringCharacters());
    texts_.resize(ids_.size(), CharacterArray());
    for (const StringCharacters& string : strings.span()) {
      const uint32_t array = ids_.Find(string.array);
      if (texts_[array].strings++ == 0)
        characters_[array] = string;
    }
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    const uint32_t array = ids_.Find(record.id);
    if (array == kNoObject || texts_[array].content.data != nullptr)
      return;
    CharacterArray& text = texts_[array];
    text.content = BytesOf(characters_[array], record);
    if (text.content.data == nullptr)
      return;
    text.array_bytes =
        ArrayBytes(uint64_t{record.length} * ValueBytes(record.type, 0), layout_);
    text.hash = HashOf(text.content);
  }

  // Those that were found, equal ones side by side in the order of the file.
  Column<CharacterArray> Finish() {
    Column<CharacterArray> found;
    for (const CharacterArray& text : texts_.span()) {
      if (text.content.data != nullptr)
        found.push_back(text);
    }
    std::sort(found.begin(), found.end(),
              [](const CharacterArray& a, const CharacterArray& b) {
                return std::tie(a.hash, a.content.bytes, a.content.data) <
                       std::tie(b.hash, b.content.bytes, b.content.data);
              });
    return found;
  }

 private:
  static Column<uint64_t> IdsOf(const Column<StringCharacters>& strings) {
    Column<uint64_t> ids;
    for (const StringCharacters& string : strings.span())
      ids.push_back(string.array);
    return ids;
  }

  uint64_t HashOf(const StringBytes& text) const {
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
  Column<StringCharacters> characters_;  // by array
  Column<CharacterArray> texts_;
};

// The file may be changed while it is read: what has an equal hash need not be equal.
bool AreEqual(const CharacterArray& one, const CharacterArray& other) {
  const StringBytes& a = one.content;
  const StringBytes& b = other.content;
  return one.hash == other.hash && a.bytes == b.bytes && a.type == b.type &&
         a.coder == b.coder && memcmp(a.data, b.data, a.bytes) == 0;
}

DuplicateString RowOf(const Column<CharacterArray>& texts,
                      size_t begin,
                      size_t end,
                      uint64_t string_bytes) {
  DuplicateString row;
  for (size_t i = begin; i < end; ++i) {
    row.strings += texts[i].strings;
    row.bytes += texts[i].array_bytes + texts[i].strings * string_bytes;
  }
  row.arrays = end - begin;
  row.length = texts[begin].content.length();
  row.wasted = row.bytes - texts[begin].array_bytes - string_bytes;
  return row;
}

}  // namespace

DuplicateStrings FindDuplicateStrings(const DumpFile& file,
                                      const HeapDump& dump,
                                      const HeapCensus& census,
                                      size_t most) {
  DuplicateStrings found;
  const uint32_t row = RowOfStringClass(file, census.classes);
  if (row == UINT32_MAX)
    return found;
  StringCollector collector(file.id_bytes(), census.classes[row].id,
                            StringFieldsOf(FieldLayouts(file, census.classes), row));
  WalkDump(file, dump, collector);
  TextFinder finder(collector.Finish(), census.layout);
  WalkDump(file, dump, finder);
  const Column<CharacterArray> texts = finder.Finish();
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
  // Hashes are different each time; what is shown is not.
  const auto place_in_file = [&texts](size_t place) { return texts[place].content.data; };
  std::ranges::sort(rows, [&](const auto& a, const auto& b) {
    return a.first.wasted != b.first.wasted
               ? a.first.wasted > b.first.wasted
               : place_in_file(a.second) < place_in_file(b.second);
  });
  found.texts = rows.size();
  rows.resize(std::min(rows.size(), most));
  for (auto& [of_text, place] : rows) {
    of_text.text = TextOf(texts[place].content, kMaxShownCharacters);
    found.rows.push_back(std::move(of_text));
  }
  return found;
}

}  // namespace heapprofd::hprof
