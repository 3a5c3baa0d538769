// Reads the mapping files that ProGuard and R8 write beside an obfuscated application.
//
//   # comment; R8 puts JSON into some
//   com.example.Store -> a.b:
//       int size -> a
//       1:3:void read(int,java.lang.String):17:19 -> b
//       4:4:void com.example.Log.d():5:5 -> b
//       4:4:void read(int,java.lang.String):20 -> b
//
// A class line ends in ':'; the lines of its members are indented. Methods may have a
// range of lines in the obfuscated class in front and one in the source behind their
// arguments. Lines with the same range in front are a method that was inlined (the first)
// into the next one. A method's name with a '.' is of another class, which it was inlined
// from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "profile/deobfuscation.h"

namespace heapprofd {

struct ProguardMap {
  DeobfuscationMap map;
  // Lines that are no part of the format, or contradict others, are left out.
  uint64_t skipped_lines = 0;
  std::string first_problem;  // "line 7: ..."; empty: none
};

// `name` is for messages. kCorrupt: the text has no class at all.
Result<ProguardMap> ParseProguardMap(std::string_view text,
                                     const std::string& name,
                                     const std::string& package);

// One element of PERFETTO_PROGUARD_MAP.
struct ProguardSource {
  std::string package;  // empty: of all packages
  std::string path;
};

// Takes "package=file[:package=file...]" apart; a file without "package=" is for all
// packages. kInvalidArgument: an empty file name.
Result<std::vector<ProguardSource>> ParseProguardSources(std::string_view text);

// Reads and parses the file. Errors: kIo, kCorrupt.
Result<ProguardMap> ReadProguardMap(const ProguardSource& source);

}  // namespace heapprofd
