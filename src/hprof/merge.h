// Dumps of Dalvik 1.0 and 1.1 are two files: the tail has the heap and is written first,
// the head has the names that were found on the way. An analyzer wants the head first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hprof/mapped_input.h"

namespace heapprofd::hprof {

struct DumpPair {
  MappedInput head;
  MappedInput tail;
  std::vector<std::string> notes;  // what a user should know of them
};

// The two files in any order. kInvalidArgument: they are no head and tail of one dump.
Result<DumpPair> OpenPair(const std::string& one, const std::string& other);

// `path` itself or its other half, as the virtual machine names it: "X.hprof-head" beside
// "X.hprof"; empty: there is none.
std::string OtherHalf(const std::string& path);

// A whole dump, or a half of one whose other half lies beside it.
Result<MappedInput> OpenWhole(const std::string& path, std::vector<std::string>* notes);

}  // namespace heapprofd::hprof
