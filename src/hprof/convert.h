// hprof-conv: Android's dumps as those that every other analyzer reads.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd::hprof {

using Output = std::function<Status(std::string_view bytes)>;

struct ConvertOptions {
  bool app_heap_only = false;  // without objects of the zygote's and the image's heaps
};

struct ConvertReport {
  bool was_plain = false;  // nothing of Android's was in it: a copy was made
};

// `name` is for messages. kCorrupt: the input is cut or none; what went to `output` until
// then is of no use. Writes what Android's hprof-conv writes, where that is right: it
// takes 8-byte ids for 4-byte ones, forgets to take the length of an array without data
// to zero and takes a dump that is cut between two records for a whole one.
Result<ConvertReport> Convert(std::string_view bytes,
                              const std::string& name,
                              const ConvertOptions& options,
                              const Output& output);

}  // namespace heapprofd::hprof
