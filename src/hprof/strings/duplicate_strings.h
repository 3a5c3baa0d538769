// Texts that a heap has several times: what they are, and what would be saved if each was
// there once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hprof/census.h"

namespace heapprofd::hprof {

struct DuplicateString {
  std::string text;     // UTF-8; the first kMaxShownCharacters
  uint64_t length = 0;  // characters
  uint64_t strings = 0;
  uint64_t arrays = 0;  // with the characters; strings can share them
  uint64_t bytes = 0;   // of all of them
  uint64_t wasted = 0;  // without those of one string and array
};

inline constexpr size_t kMaxShownCharacters = 200;

struct DuplicateStrings {
  std::vector<DuplicateString> rows;  // those that waste most first
  uint64_t texts = 0;                 // that are there several times
  uint64_t strings = 0;               // all there are
  uint64_t bytes = 0;                 // of all
  uint64_t wasted = 0;                // by all
};

// At most `most` rows. Reachable or not. Strings that are parts of the same array (JDK 6,
// Android 5) count with the first of them.
DuplicateStrings FindDuplicateStrings(const DumpFile& file,
                                      const HeapDump& dump,
                                      const HeapCensus& census,
                                      size_t most);

}  // namespace heapprofd::hprof
