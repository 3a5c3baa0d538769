// A lying target, all the way to the files: records with made-up numbers are drained, and
// whatever profile comes of them is written in every form. Values must be what readers
// can hold.
//
// Input: as many as there are of {size, interval, address, stack: 8 bytes each}, an odd
// address being freed again.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/results/summary.h"
#include "engine/target/test_target.h"
#include "export/formats.h"
#include "trace/dump_messages.h"

namespace heapprofd {
namespace {

struct Numbers {
  uint64_t size;
  uint64_t interval;
  uint64_t address;
  uint64_t key;
};

void WriteEvent(TestTarget& target, const Numbers& numbers) {
  SampleRecord sample = TestSample(numbers.address, numbers.size, /*outer_hash=*/0);
  sample.tsc = numbers.key;
  sample.interval = numbers.interval & kIntervalBits;
  const uint64_t key = numbers.key % 16;
  target.WriteSample(sample, {&key, 1});
  if (numbers.address % 2 == 0)
    return;
  target.WriteFree(RecordType::kFree, {.address = numbers.address,
                                       .tsc = numbers.key,
                                       .thread_id = 1,
                                       .heap_id = 0,
                                       .is_realloc = 0,
                                       .reserved = 0});
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
    AppendSample(message, 1, totals, {.peak = &totals.allocated}, written);
    if (written.freed > written.allocated || written.allocated > INT64_MAX ||
        written.free_count > written.alloc_count || written.alloc_count > INT64_MAX ||
        !std::isfinite(totals.allocated.bytes_variance))
      abort();
  }
  for (const ExportFormat& format : kExportFormats)
    format.encode({profile, dump});
  ProcessResult result;
  result.profile = &profile;
  result.history = {dump.peak_total.bytes, 0, dump.peak_total.bytes};
  FormatSummary({result}, {});
}

void Run(const uint8_t* data, size_t size) {
  TestTarget target;
  ClientBlock& client = target.client();
  for (; size >= sizeof(Numbers); data += sizeof(Numbers), size -= sizeof(Numbers)) {
    Numbers numbers;
    memcpy(&numbers, data, sizeof(numbers));
    WriteEvent(target, numbers);
    client.ring.slot_count = 2;
    client.slots[0].granted += numbers.size;
    client.slots[1].calls += numbers.interval;
  }
  target.DrainAndDump(/*writers_gone=*/true);
  Export(target.target().profile());
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::Run(data, size);
  return 0;
}
