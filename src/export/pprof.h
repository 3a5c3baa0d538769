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
};

// The serialized profile of one heap with the four views of the seed: alloc_objects,
// alloc_space, objects, space (the default). Same input, same bytes.
std::string EncodePprof(const TargetProfile& profile,
                        const HeapDump& dump,
                        const PprofOptions& options);

// What the recording was worth, in words: one of the comments.
std::string QualityComment(const Quality& quality);

}  // namespace heapprofd
