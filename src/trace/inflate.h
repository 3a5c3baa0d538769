// Decompression of what traces are wrapped in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

enum class Compression : uint8_t { kNone, kGzip, kZlib, kZstd };

// By the first bytes: gzip and zstd have a mark; kNone otherwise.
Compression CompressionOf(std::string_view first_bytes);

// One compressed stream, decompressed piece by piece.
class Inflater {
 public:
  static std::unique_ptr<Inflater> Create(Compression compression);

  virtual ~Inflater() = default;

  struct Progress {
    size_t consumed = 0;  // bytes of the input
    size_t produced = 0;
    bool is_end = false;  // of the stream; more input may follow it
  };

  // kCorrupt: the input is no such stream.
  virtual Result<Progress> Inflate(std::string_view input, std::span<char> output) = 0;
};

// A whole stream. What does not fit into `max_bytes` or is damaged is left out:
// `*is_whole` says whether all is there.
std::string InflateAll(Compression compression,
                       std::string_view input,
                       size_t max_bytes,
                       bool* is_whole);

}  // namespace heapprofd
