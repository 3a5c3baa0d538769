#include "attach/setup_request.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>

#include "base/files/memory_limits.h"
#include "base/random_seed.h"
#include "rt/machine.h"
#include "wire/shared_memory.h"
#include "wire/small_memory.h"

namespace heapprofd {
namespace {

constexpr uint64_t kHoldNs = 500'000'000;  // a thread in our code waits for us at most
constexpr uint64_t kStaleSeconds = 3;      // then the client takes us for lost

// Time stamp counter ticks per second, measured once.
uint64_t TicksPerSecond() {
  static const uint64_t ticks = [] {
    const uint64_t start_ns = MonotonicNs();
    const uint64_t start = rt::ReadTsc();
    SleepNs(2'000'000);
    const uint64_t elapsed_ns = std::max<uint64_t>(MonotonicNs() - start_ns, 1);
    return (rt::ReadTsc() - start) * 1000 / elapsed_ns * 1'000'000;
  }();
  return ticks;
}

// Where the kernel put what the process was started with, above the first thread's frames;
// 0: unknown.
uint64_t StartOfStack(pid_t pid) {
  constexpr int kStartStack = 28;
  const std::string stat = ReadProcFile(ProcPath(pid, "stat"), kMaxStatText);
  return strtoull(StatFields(stat, kStartStack, kStartStack).c_str(), nullptr, 10);
}

}  // namespace

uint64_t RingSizeFor(pid_t pid, uint64_t wanted) {
  return wanted == kUsualRing &&
                 IsMemoryLimited(pid, kSmallClient + kSpareMemory + 2 * wanted)
             ? kSmallRing
             : wanted;
}

namespace {

// What does not depend on the process's code.
void Fill(pid_t pid, const SetupWishes& wishes, SetupRequest* request) {
  request->ring_size = RingSizeFor(pid, wishes.ring_size);
  request->seed = RandomSeed();
  request->hold_ticks = TicksPerSecond() / 1000 * (kHoldNs / 1'000'000);
  request->stale_ticks = TicksPerSecond() * kStaleSeconds;
  request->pid = static_cast<uint32_t>(InnerId(pid));
  request->children = wishes.children;
}

}  // namespace

SetupRequest MakeSetupRequest(const RemoteProcess& process,
                              const SetupWishes& wishes,
                              const LibcAddresses& libc,
                              const std::vector<uint64_t>& islands) {
  struct {
    uint32_t bits;
    uint32_t count;
    uint32_t offset;
  } thread_id_field{};

  SetupRequest request{};
  Fill(process.pid(), wishes, &request);
  for (size_t i = 0; i < islands.size(); ++i)
    request.islands[i] = islands[i];
  if (libc.stack_end == 0)
    request.stack_end = StartOfStack(process.pid());
  else if (!process.ReadObject(libc.stack_end, &request.stack_end) ||
           request.stack_end == 0)
    request.stack_end_at = libc.stack_end;
  if (libc.thread_id_field != 0 && libc.thread_block_size != 0 &&
      process.ReadObject(libc.thread_id_field, &thread_id_field) &&
      process.ReadObject(libc.thread_block_size, &request.thread_block_size))
    request.tid_offset = thread_id_field.offset;
  return request;
}

SetupRequest MakeChildRequest(const RemoteProcess& process,
                              const SetupWishes& wishes,
                              const SetupRequest& parents) {
  SetupRequest request = parents;
  Fill(process.pid(), wishes, &request);
  request.keeps_counting = 1;
  std::fill(std::begin(request.islands), std::end(request.islands), 0);
  return request;
}

}  // namespace heapprofd
