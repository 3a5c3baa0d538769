#include "client/preload/allocator_report.h"

#include <malloc.h>

#include "client/confinement.h"
#include "client/engine_link/engine_wait.h"
#include "client/preload/real_functions.h"
#include "rt/compiler.h"

namespace heapprofd {
namespace {

using MallInfo2 = struct mallinfo2 (*)();
using MallCtl = int (*)(const char*, void*, size_t*, void*, size_t);

struct Statistics {
  MallInfo2 mallinfo2 = nullptr;  // glibc
  MallCtl mallctl = nullptr;      // jemalloc
};

constinit Statistics g_statistics;

uint64_t JemallocValue(const char* name) {
  uint64_t value = 0;
  size_t size = sizeof(value);
  return g_statistics.mallctl(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

void AskJemalloc(AllocatorReport& report) {
  uint64_t epoch = 1;  // refreshes the figures
  size_t size = sizeof(epoch);
  g_statistics.mallctl("epoch", &epoch, &size, &epoch, sizeof(epoch));
  const uint64_t in_use = JemallocValue("stats.allocated");
  const uint64_t resident = JemallocValue("stats.resident");
  report.in_use.store(in_use, std::memory_order_relaxed);
  report.system.store(resident, std::memory_order_relaxed);
  report.free.store(resident > in_use ? resident - in_use : 0, std::memory_order_relaxed);
  report.kind.store(static_cast<uint32_t>(AllocatorKind::kJemalloc),
                    std::memory_order_relaxed);
}

void AskGlibc(AllocatorReport& report) {
  const struct mallinfo2 info = g_statistics.mallinfo2();
  report.in_use.store(info.uordblks + info.hblkhd, std::memory_order_relaxed);
  report.system.store(info.arena + info.hblkhd, std::memory_order_relaxed);
  report.free.store(info.fordblks, std::memory_order_relaxed);
  report.kind.store(static_cast<uint32_t>(AllocatorKind::kGlibc),
                    std::memory_order_relaxed);
}

}  // namespace

void ResolveAllocatorStatistics() {
  const RealDefinition malloc_function = FindRealFunction("malloc");
  const RealDefinition mallinfo = FindRealFunction("mallinfo2");
  const RealDefinition mallctl = FindRealFunction("mallctl");
  if (mallctl.object == malloc_function.object && mallctl.address != nullptr)
    g_statistics.mallctl = reinterpret_cast<MallCtl>(mallctl.address);
  else if (mallinfo.object == malloc_function.object && mallinfo.address != nullptr)
    g_statistics.mallinfo2 = reinterpret_cast<MallInfo2>(mallinfo.address);
}

HPD_COLD void ReportAllocator(uint32_t question) {
  // A forked child that still counts on privately was not asked: its parent was.
  if (g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  AllocatorReport& report = g_session.client()->ring.allocator;
  uint32_t before = report.taken.load(std::memory_order_relaxed);
  if (before == question || !report.taken.compare_exchange_strong(before, question))
    return;  // another thread is at it
  report.kind.store(static_cast<uint32_t>(AllocatorKind::kUnknown),
                    std::memory_order_relaxed);
  if (g_statistics.mallctl != nullptr)
    AskJemalloc(report);
  else if (g_statistics.mallinfo2 != nullptr)
    AskGlibc(report);
  report.answered.store(question, std::memory_order_release);
}

HPD_COLD void ReportExit() {
  if (g_wiped.active.load(std::memory_order_acquire) == 0 ||
      g_session.state.load(std::memory_order_acquire) != SessionState::kActive ||
      g_session.engine()->control.look_at_exit.load(std::memory_order_relaxed) == 0)
    return;
  RingHeader& header = g_session.client()->ring;
  ReportAllocator(kQuestionAtExit);
  header.exiting.store(1, std::memory_order_release);
  constexpr uint64_t kLimitNs = 1'000'000'000;
  constexpr long kNapNs = 1'000'000;
  EngineWait wait(kLimitNs);
  while (header.exit_seen.load(std::memory_order_acquire) == 0 &&
         !IsSessionOver(g_session.engine()->control) && wait.MayGoOn())
    Nap(kNapNs);
}

}  // namespace heapprofd
