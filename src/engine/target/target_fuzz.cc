// Everything in the client's memory is the target's: drains rings of random records.
//
// Input: records of {length in words, type, then that many words of payload}; the header
// is made valid so that what is behind it gets looked at.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "engine/target/target.h"
#include "wire/ring_writer.h"

namespace heapprofd {
namespace {

void Drain(const uint8_t* data, size_t size) {
  static ModuleCache modules;
  static TscClock clock;
  SessionConfig config;
  config.ring_size_bytes = 32 * 1024;
  auto target = Target::Create(getpid(), config, &modules, &clock);
  if (!target.ok())
    abort();
  SharedMemory& memory = target.value()->memory();
  RingWriter writer(&memory.client().ring, const_cast<std::byte*>(memory.ring()),
                    memory.ring_size());
  // Names of heaps and labels, also unterminated ones.
  ClientBlock& client = memory.client();
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
    const auto reservation = writer.Reserve(static_cast<RecordType>(data[1] % 8), length);
    if (reservation.payload == nullptr)
      break;
    memcpy(reservation.payload, data + 2, length);
    if (data[1] < 0xf0)
      writer.Commit(reservation);
    data += 2 + length;
    size -= 2 + length;
  }
  clock.Update();
  while (target.value()->Drain(100, /*writers_gone=*/true) > 0) {
  }
  target.value()->Tick(UINT64_MAX);
  target.value()->UpdateDump();
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::Drain(data, size);
  return 0;
}
