// Everything in the shared memory may be the target's: drains rings of random records, and
// writes random words into both blocks meanwhile.
//
// Input: records of {length in words, type, then that many words of payload}; the header
// is made valid so that what is behind it gets looked at. Of type kWrites the payload is
// written into the blocks instead: words of {place, value}.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

constexpr uint8_t kWrites = 0xa5;

// The mutex alone is safe: the file is sealed before a target has it (wire/memory_files.h).
bool IsWritable(size_t word) {
  constexpr size_t kLock = offsetof(SessionControl, engine_lock) / 8;
  return word < kLock || word >= kLock + sizeof(SessionControl::engine_lock) / 8;
}

void WriteWords(const uint8_t* data, size_t size, SharedMemory& memory) {
  for (; size >= 16; data += 16, size -= 16) {
    uint64_t word[2];
    memcpy(word, data, sizeof(word));
    const size_t place = word[0] % ((sizeof(EngineBlock) + kRingOffset) / 8);
    std::byte* const block =
        place < sizeof(EngineBlock) / 8
            ? reinterpret_cast<std::byte*>(&memory.engine())
            : reinterpret_cast<std::byte*>(&memory.client()) - sizeof(EngineBlock);
    if (IsWritable(place))
      memcpy(block + place * 8, word + 1, 8);
  }
}

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
    if (data[1] == kWrites) {
      WriteWords(data + 2, length, target.memory());
      target.DrainAndDump(/*writers_gone=*/false);
      target.target().recorder().Tick(UINT64_MAX);
      data += 2 + length;
      size -= 2 + length;
      continue;
    }
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
