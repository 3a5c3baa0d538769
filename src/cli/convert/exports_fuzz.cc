// A lying target, all the way to the files: records with made-up numbers are drained, and
// whatever profile comes of them is written in every form. Values must be what readers
// can hold.
//
// Input: as many as there are of {size, interval, address, stack: 8 bytes each}, an odd
// address being freed again.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/results/summary.h"
#include "engine/target/target.h"
#include "export/folded.h"
#include "export/pprof.h"
#include "export/view.h"
#include "trace/dump_messages.h"
#include "wire/ring_writer.h"

namespace heapprofd {
namespace {

struct Numbers {
  uint64_t size;
  uint64_t interval;
  uint64_t address;
  uint64_t key;
};

template <typename Record>
void Write(RingWriter& writer, RecordType type, const Record& record, uint64_t key) {
  const size_t keys = type == RecordType::kSample ? sizeof(key) : 0;
  const auto reservation = writer.Reserve(type, sizeof(record) + keys);
  if (reservation.payload == nullptr)
    return;
  memcpy(reservation.payload, &record, sizeof(record));
  memcpy(reservation.payload + sizeof(record), &key, keys);
  writer.Commit(reservation);
}

void WriteEvent(RingWriter& writer, const Numbers& numbers) {
  const SampleRecord sample{.address = numbers.address,
                            .size = numbers.size,
                            .tsc = numbers.key,
                            .outer_hash = 0,
                            .interval = numbers.interval,
                            .thread_id = 1,
                            .frame_count = 1,
                            .heap_id = 0,
                            .flags = 0};
  Write(writer, RecordType::kSample, sample, numbers.key % 16);
  if (numbers.address % 2 == 0)
    return;
  const FreeRecord free{.address = numbers.address,
                        .tsc = numbers.key,
                        .thread_id = 1,
                        .heap_id = 0,
                        .is_realloc = 0,
                        .reserved = 0};
  Write(writer, RecordType::kFree, free, 0);
}

void Export(const TargetProfile& profile) {
  const HeapDump& dump = profile.heaps[0];
  for (const auto& [callsite, totals] : dump.callsites) {
    for (const View view :
         {View::kAllocObjects, View::kAllocSpace, View::kObjects, View::kSpace}) {
      if (ValueOf(totals, view) < 0)
        abort();
    }
    WrittenTotals written;
    std::string message;
    AppendSample(message, 1, totals, &totals.allocated, written);
    if (written.freed > written.allocated || written.allocated > INT64_MAX ||
        written.free_count > written.alloc_count || written.alloc_count > INT64_MAX ||
        !std::isfinite(totals.allocated.bytes_variance))
      abort();
  }
  EncodePprof(profile, dump, {});
  EncodeFolded(profile, dump, View::kSpace);
  ProcessResult result;
  result.profile = &profile;
  result.history = {dump.peak_total.bytes, 0, dump.peak_total.bytes};
  FormatSummary({result}, {});
}

void Run(const uint8_t* data, size_t size) {
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
  for (; size >= sizeof(Numbers); data += sizeof(Numbers), size -= sizeof(Numbers)) {
    Numbers numbers;
    memcpy(&numbers, data, sizeof(numbers));
    WriteEvent(writer, numbers);
    memory.client().ring.slot_count = 2;
    memory.client().slots[0].granted += numbers.size;
    memory.client().slots[1].calls += numbers.interval;
  }
  clock.Update();
  target.value()->DrainRest(target.value()->RestEnd(), /*writers_gone=*/true);
  target.value()->UpdateDump();
  Export(target.value()->profile());
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::Run(data, size);
  return 0;
}
