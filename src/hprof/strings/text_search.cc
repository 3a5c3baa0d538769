#include "hprof/strings/text_search.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/utf8.h"
#include "hprof/wanted_ids.h"

namespace heapprofd::hprof {
namespace {

constexpr uint32_t kLastLatin1 = 0xFF;
constexpr uint32_t kFirstPair = 0x10000;  // of two UTF-16 units

// The character at the start of well-formed text, which is taken off.
uint32_t TakeCharacter(std::string_view* text) {
  const auto first = static_cast<uint8_t>(text->front());
  const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t character = bytes == 1 ? first : first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i)
    character = character << 6 | (static_cast<uint8_t>((*text)[i]) & 0x3F);
  text->remove_prefix(bytes);
  return character;
}

// Where it begins in `bytes`, at a multiple of `width`; nullptr: nowhere.
const uint8_t* FindPart(const StringBytes& bytes, const std::string& part, size_t width) {
  const uint8_t* at = bytes.data;
  const uint8_t* const end = bytes.data + bytes.bytes;
  while (true) {
    const auto* const found = static_cast<const uint8_t*>(
        memmem(at, static_cast<size_t>(end - at), part.data(), part.size()));
    if (found == nullptr || static_cast<size_t>(found - bytes.data) % width == 0)
      return found;
    at = found + 1;
  }
}

using ArrayRows = std::vector<std::pair<uint64_t, PrimitiveArrayRecord>>;

bool IsBefore(const ArrayRows::value_type& a, const ArrayRows::value_type& b) {
  return a.first < b.first;
}

class ArraysWithText : public HeapVisitor {
 public:
  explicit ArraysWithText(const TextSearch& search) : search_(search) {}

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    if (search_.MayBeIn(record))
      arrays_.emplace_back(record.id, record);
  }

  // Sorted; of those with the same id the first one first.
  ArrayRows Finish() {
    std::stable_sort(arrays_.begin(), arrays_.end(), IsBefore);
    return std::move(arrays_);
  }

 private:
  const TextSearch& search_;
  ArrayRows arrays_;
};

class StringsWithText : public HeapVisitor {
 public:
  StringsWithText(const DumpFile& file,
                  const ClassTable& classes,
                  const TextSearch& search,
                  ArrayRows arrays)
      : classes_(classes),
        id_bytes_(file.id_bytes()),
        search_(search),
        arrays_(std::move(arrays)),
        fields_(classes.size()) {
    for (const auto& [id, array] : arrays_)
      filter_.Add(id);
    const FieldLayouts layouts(file, classes);
    for (uint32_t row = 0; row < classes.size(); ++row) {
      if (IsStringClass(file, classes, row))
        fields_[row] = StringFieldsOf(layouts, row);
    }
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    if (row == UINT32_MAX || !fields_[row])
      return;
    const StringCharacters characters = CharactersOf(record, *fields_[row], id_bytes_);
    if (!filter_.MayHave(characters.array))
      return;
    const auto array = std::lower_bound(
        arrays_.begin(), arrays_.end(),
        ArrayRows::value_type{characters.array, PrimitiveArrayRecord()}, IsBefore);
    if (array == arrays_.end() || array->first != characters.array)
      return;
    const StringBytes bytes = BytesOf(characters, array->second);
    if (search_.IsIn(bytes, &bytes_left_))
      found_.emplace_back(record.id, bytes);
  }

  std::vector<std::pair<uint64_t, StringBytes>>& found() { return found_; }

  uint64_t& bytes_left() { return bytes_left_; }

 private:
  const ClassTable& classes_;
  const uint32_t id_bytes_;
  const TextSearch& search_;
  const ArrayRows arrays_;
  std::vector<std::optional<StringFields>> fields_;  // by class
  IdFilter filter_;
  uint64_t bytes_left_ = 0;
  std::vector<std::pair<uint64_t, StringBytes>> found_;
};

}  // namespace

TextSearch::TextSearch(const WantedText& wanted) : is_part_(wanted.is_part) {
  const auto add = [this](uint32_t unit) {
    const auto low = static_cast<char>(unit);
    const auto high = static_cast<char>(unit >> 8);
    utf16_.append({low, high});
    dumped_chars_.append({high, low});
  };
  const std::string text = ToUtf8(wanted.text);
  for (std::string_view left = text; !left.empty();) {
    const uint32_t character = TakeCharacter(&left);
    is_latin1_ = is_latin1_ && character <= kLastLatin1;
    latin1_ += static_cast<char>(character);
    if (character >= kFirstPair) {
      add(0xD800 + ((character - kFirstPair) >> 10));
      add(0xDC00 + ((character - kFirstPair) & 0x3FF));
    } else {
      add(character);
    }
  }
}

const std::string& TextSearch::WrittenFor(uint8_t type, uint8_t coder) const {
  return type == kChar ? dumped_chars_ : coder == kUtf16Coder ? utf16_ : latin1_;
}

bool TextSearch::MayBeIn(const PrimitiveArrayRecord& record) const {
  if (record.data == nullptr || (record.type != kByte && record.type != kChar))
    return false;
  const size_t bytes = size_t{record.length} * ValueBytes(record.type, 0);
  const auto has = [&](const std::string& text) {
    return memmem(record.data, bytes, text.data(), text.size()) != nullptr;
  };
  if (record.type == kChar)
    return has(dumped_chars_);
  return (is_latin1_ && has(latin1_)) || has(utf16_);
}

bool TextSearch::IsIn(const StringBytes& bytes, uint64_t* bytes_left) const {
  const bool is_wide = bytes.type == kChar || bytes.coder == kUtf16Coder;
  const std::string& text = WrittenFor(bytes.type, bytes.coder);
  if (bytes.data == nullptr || (!is_wide && !is_latin1_) || bytes.bytes < text.size() ||
      (!is_part_ && bytes.bytes != text.size()))
    return false;
  if (*bytes_left < bytes.bytes) {
    *bytes_left = 0;
    return false;
  }
  *bytes_left -= bytes.bytes;
  return is_part_ ? FindPart(bytes, text, is_wide ? 2 : 1) != nullptr
                  : memcmp(bytes.data, text.data(), text.size()) == 0;
}

MatchingStrings MatchingStrings::Find(const DumpFile& file,
                                      const HeapDump& dump,
                                      const HeapCensus& census,
                                      const WantedText& wanted) {
  constexpr uint64_t kMostCompared = 8;  // times the dump
  const TextSearch search(wanted);
  ArraysWithText arrays(search);
  WalkDump(file, dump, arrays);
  StringsWithText strings(file, census.classes, search, arrays.Finish());
  for (const HeapRange& range : dump.ranges)
    strings.bytes_left() +=
        kMostCompared * static_cast<uint64_t>(range.end - range.begin);
  WalkDump(file, dump, strings);
  MatchingStrings matching;
  matching.is_whole_ = strings.bytes_left() > 0;
  matching.strings_ = std::move(strings.found());
  std::stable_sort(matching.strings_.begin(), matching.strings_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return matching;
}

const StringBytes* MatchingStrings::BytesOf(uint64_t id) const {
  const auto found = std::lower_bound(
      strings_.begin(), strings_.end(), id,
      [](const auto& row, uint64_t wanted) { return row.first < wanted; });
  return found == strings_.end() || found->first != id ? nullptr : &found->second;
}

}  // namespace heapprofd::hprof
