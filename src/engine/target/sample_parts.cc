#include "engine/target/sample_parts.h"

#include <cstring>

namespace heapprofd {
namespace {

// Copies a T off the front of `bytes`.
template <typename T>
bool Take(std::span<const std::byte>& bytes, T* value) {
  if (bytes.size() < sizeof(T))
    return false;
  memcpy(value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return true;
}

}  // namespace

std::optional<SampleParts> ParseSample(std::span<const std::byte> payload) {
  SampleParts parts;
  if (!Take(payload, &parts.record) || parts.record.interval == 0 ||
      parts.record.interval > kMaxInterval || parts.record.size == 0 ||
      parts.record.size > kMaxAllocation || parts.record.frame_count > kMaxFrames)
    return std::nullopt;
  if ((parts.record.flags & kSampleHasLabels) != 0 && !Take(payload, &parts.labels))
    return std::nullopt;
  const size_t key_bytes = size_t{parts.record.frame_count} * sizeof(uint64_t);
  if (payload.size() < key_bytes)
    return std::nullopt;
  parts.keys = {reinterpret_cast<const uint64_t*>(payload.data()),
                size_t{parts.record.frame_count}};
  payload = payload.subspan(key_bytes);
  if ((parts.record.flags & kSampleHasStackCopy) != 0) {
    if (!Take(payload, &parts.copy) || parts.copy.size != payload.size() ||
        parts.copy.size > kMaxStackCopy)
      return std::nullopt;
    parts.copy_bytes = payload;
    payload = {};
  }
  if (!payload.empty())
    return std::nullopt;
  return parts;
}

namespace {

template <typename Record>
std::optional<Record> ParseWhole(std::span<const std::byte> payload) {
  Record record;
  if (payload.size() != sizeof(record))
    return std::nullopt;
  memcpy(&record, payload.data(), sizeof(record));
  return record;
}

}  // namespace

std::optional<FreeRecord> ParseFree(std::span<const std::byte> payload) {
  return ParseWhole<FreeRecord>(payload);
}

std::optional<MarkRecord> ParseMark(std::span<const std::byte> payload) {
  return ParseWhole<MarkRecord>(payload);
}

}  // namespace heapprofd
