// Finds the strings of a dump with a text: what is wanted is written as arrays have it,
// so that arrays are searched at the speed of memory and no text is made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hprof/census.h"
#include "hprof/strings/java_string.h"

namespace heapprofd::hprof {

struct WantedText {
  std::string text;      // UTF-8
  bool is_part = false;  // anywhere in a string; else it is all of it
};

class TextSearch {
 public:
  explicit TextSearch(const WantedText& wanted);

  // Whether some string with this array may have it.
  bool MayBeIn(const PrimitiveArrayRecord& record) const;

  // Takes what it compares off `bytes_left`; false when nothing is left.
  bool IsIn(const StringBytes& bytes, uint64_t* bytes_left) const;

 private:
  const std::string& WrittenFor(uint8_t type, uint8_t coder) const;

  const bool is_part_;
  bool is_latin1_ = true;  // can be written with one byte for each character
  std::string latin1_;
  std::string utf16_;         // in the machine's order, as HotSpot keeps it in bytes
  std::string dumped_chars_;  // in that of a dump
};

// Those strings, by id.
class MatchingStrings {
 public:
  // Two walks over the dump. Parts of arrays that many strings share are compared until
  // eight times the dump has been: `is_whole` tells whether that was enough.
  static MatchingStrings Find(const DumpFile& file,
                              const HeapDump& dump,
                              const HeapCensus& census,
                              const WantedText& wanted);

  bool Has(uint64_t id) const { return BytesOf(id) != nullptr; }

  // nullptr: it is none of them.
  const StringBytes* BytesOf(uint64_t id) const;

  bool is_whole() const { return is_whole_; }

 private:
  std::vector<std::pair<uint64_t, StringBytes>> strings_;  // sorted
  bool is_whole_ = true;
};

}  // namespace heapprofd::hprof
