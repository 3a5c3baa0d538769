// Decompression of what traces are wrapped in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

struct libdeflate_decompressor;

namespace heapprofd {

enum class Compression : uint8_t { kNone, kGzip, kZlib, kZstd };

// By the first bytes: gzip and zstd have a mark; kNone otherwise.
Compression CompressionOf(std::string_view first_bytes);

// How many times its size a file may inflate to: HEAPPROFD_MAX_UNPACK_RATIO, else 64;
// 0: there is no limit. Recordings compress to a twentieth at best.
uint64_t MaxUnpackRatio();

// "more than 64 times its size, as no recording does; HEAPPROFD_MAX_UNPACK_RATIO=0 lifts
// this limit".
std::string UnpackLimitText();

// Tells files that are made to inflate to more than anybody waits for from recordings.
class InflationBudget {
 public:
  explicit InflationBudget(uint64_t max_ratio = MaxUnpackRatio())
      : max_ratio_(max_ratio) {}

  // Counts what was inflated. False: it is too much.
  bool Take(uint64_t compressed_bytes, uint64_t inflated_bytes) {
    compressed_ += compressed_bytes;
    inflated_ += inflated_bytes;
    return !is_spent();
  }

  // Nothing more should be inflated.
  bool is_spent() const {
    return max_ratio_ != 0 && inflated_ > kFreeBytes &&
           (inflated_ - kFreeBytes) / max_ratio_ >= compressed_;
  }

 private:
  // A small file may repeat itself as it likes.
  static constexpr uint64_t kFreeBytes = uint64_t{1} << 26;

  uint64_t max_ratio_;
  uint64_t compressed_ = 0;
  uint64_t inflated_ = 0;
};

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

// Gzip streams that are in memory as a whole, twice as fast as piece by piece.
class WholeInflater {
 public:
  WholeInflater();

  WholeInflater(const WholeInflater&) = delete;
  WholeInflater& operator=(const WholeInflater&) = delete;

  ~WholeInflater();

  // The stream that `input` begins with. nullopt: it is for an Inflater to say what there
  // is: the output has no room for it, its header has a checksum, or it is damaged.
  std::optional<Inflater::Progress> Inflate(std::string_view input,
                                            std::span<char> output);

 private:
  libdeflate_decompressor* decompressor_;
};

// A whole stream. What does not fit into `max_bytes` or is damaged is left out:
// `*is_whole` says whether all is there.
std::string InflateAll(Compression compression,
                       std::string_view input,
                       size_t max_bytes,
                       bool* is_whole);

}  // namespace heapprofd
