// A sample record taken apart and checked; all spans point into the reader's private
// copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/records.h"

namespace heapprofd {

struct SampleParts {
  SampleRecord record{};
  uint64_t labels = 0;  // label ids, 0: none
  std::span<const uint64_t> keys;
  StackCopyHeader copy{};                 // valid with kSampleHasStackCopy
  std::span<const std::byte> copy_bytes;  // memory from copy.sp & ~7 upward
};

// `payload` begins on 8 bytes. nullopt: the lengths inside do not fit it, or a field has
// an impossible value.
std::optional<SampleParts> ParseSample(std::span<const std::byte> payload);

std::optional<FreeRecord> ParseFree(std::span<const std::byte> payload);

// The name may lack its terminating zero.
std::optional<MarkRecord> ParseMark(std::span<const std::byte> payload);

}  // namespace heapprofd
