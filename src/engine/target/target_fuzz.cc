// Everything in the client's memory is the target's: drains rings of random records.
//
// Input: records of {length in words, type, then that many words of payload}; the header
// is made valid so that what is behind it gets looked at.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

void Drain(const uint8_t* data, size_t size) {
  TestTarget target;
  ClientBlock& client = target.client();
  // Names of heaps and labels, also unterminated ones.
  for (size_t i = 1; i < 4 && size > 0; ++i) {
    const size_t length = std::min<size_t>(size, kHeapNameSize);
    memcpy(client.heaps[i].name, data, length);
    memcpy(client.labels[i].key, data, std::min(length, kLabelKeySize));
    memcpy(client.labels[i].value, data, length);
    client.heaps[i].is_set.store(data[0]);
    client.heap_slots[i].thread_pointer.store(data[0]);
  }
  while (size >= 2) {
    const size_t length = std::min<size_t>(size_t{data[0]} * 8, (size - 2) / 8 * 8);
    const auto reservation =
        target.writer().Reserve(static_cast<RecordType>(data[1] % 8), length);
    if (reservation.payload == nullptr)
      break;
    memcpy(reservation.payload, data + 2, length);
    if (data[1] < 0xf0)
      target.writer().Commit(reservation);
    data += 2 + length;
    size -= 2 + length;
  }
  target.DrainAndDump(/*writers_gone=*/true);
  target.target().recorder().Tick(UINT64_MAX);
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::Drain(data, size);
  return 0;
}
