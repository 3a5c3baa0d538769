// The ring's bytes and positions are the target's: reads a ring of given bytes.
//
// Input: 8 bytes write position, then the ring's first bytes. Random bytes would never
// carry the right tag, so a word whose first byte is odd gets the tag of its position.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "wire/test_ring.h"

namespace heapprofd {
namespace {

constexpr uint64_t kSize = 4096;

void ReadRing(const uint8_t* data, size_t size) {
  static TestRing ring(kSize);
  uint64_t write_position = 0;
  memcpy(&write_position, data, sizeof(write_position));
  data += sizeof(write_position);
  size = std::min<size_t>(size - sizeof(write_position), kSize);
  memset(ring.bytes(), 0, kSize);
  memcpy(ring.bytes(), data, size);
  for (uint64_t position = 0; position < size / 8 * 8; position += 8) {
    if (data[position] % 2 == 0)
      continue;
    const uint32_t tag = RecordTag(position);
    memcpy(ring.bytes() + position, &tag, sizeof(tag));
  }
  ring.header().write_position.store(write_position);
  RingReader reader = ring.Reader();
  uint64_t reads = 0;
  for (const bool writers_gone : {false, true}) {
    RingReader::Record record;
    while (reader.Read(&record, writers_gone) != RingReader::Outcome::kEmpty) {
      if (++reads > kSize / 8 || record.payload.size() >= kSize)
        abort();
      reader.LookAhead([](RecordType, std::span<const uint64_t>) {});
    }
    reader.ReleaseSpace();
  }
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 8)
    heapprofd::ReadRing(data, size);
  return 0;
}
