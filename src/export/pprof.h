// A heap dump as a pprof profile (perftools.profiles.Profile, gzip'ed): opens in pprof,
// speedscope and everything else that reads the format. Field numbers: proto/pprof.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

struct PprofOptions {
  uint64_t time_unix_ns = 0;          // wall clock at the dump
  std::vector<std::string> comments;  // shown by pprof -comments
  bool has_maximum = false;           // the dump's `peak` is written, too
};

// Returns the serialized profile of one heap with those of its views that it tells:
// alloc_objects, alloc_space, objects, space (the default), and max_objects and max_space
// of a dump of the maximum. Same input, same bytes.
std::string EncodePprof(const TargetProfile& profile,
                        const HeapDump& dump,
                        const PprofOptions& options);

// The peak with its limits: a comment that reading the file back understands
// (import/pprof_importer.cc).
std::string PeakComment(const BoundedBytes& peak);

// What the recording was worth, in words: one of the comments.
std::string QualityComment(const Quality& quality);

}  // namespace heapprofd
