#include "attach/placement.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "attach/client_image.h"
#include "attach/thread/test_process.h"

namespace heapprofd {
namespace {

// Of the function that is hooked, as the process has it; a child of ours has it where we do.
std::array<uint8_t, 64> CodeOfMalloc(const RemoteProcess& process) {
  std::array<uint8_t, 64> code{};
  EXPECT_TRUE(process.ReadObject(reinterpret_cast<uint64_t>(&malloc), &code));
  return code;
}

TEST(PlacementTest, TheClientLiesThereAndNothingLeadsToIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  const TestProcess child;
  const Result<RemoteProcess> opened = RemoteProcess::Open(child.pid());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const RemoteProcess& process = opened.value();
  const auto code = CodeOfMalloc(process);
  AllocatorFinder finder;
  const Result<PlacedClient> placed =
      PlaceClient(process, {.ring_size = 65536}, &finder, /*held=*/nullptr);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_NE(placed.value().memory, nullptr);
  EXPECT_FALSE(placed.value().plan.patches.empty());
  EXPECT_FALSE(placed.value().counts_already);
  const std::vector<FoundImage> images = FindImages(process, process.Maps());
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].base, placed.value().base);
  EXPECT_EQ(CodeOfMalloc(process), code);
  EXPECT_EQ(StatusField(ReadProcFile(ProcPath(child.pid(), "status")), "TracerPid"), "0");
  // Whoever comes next uses the same memory.
  const Result<PlacedClient> next =
      PlaceClient(process, {.ring_size = 65536}, &finder, /*held=*/nullptr);
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(next.value().base, placed.value().base);
  EXPECT_NE(next.value().seed, placed.value().seed);
}

TEST(PlacementTest, AThreadThatIsHeldStaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  constexpr uint64_t kHeldPatienceNs = 10'000'000'000;
  const TestProcess child;
  const Result<RemoteProcess> process = RemoteProcess::Open(child.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  TracedThread thread(child.pid());
  ASSERT_TRUE(thread.Seize());
  ASSERT_EQ(thread.WaitForStop(MonotonicNs() + kHeldPatienceNs),
            TracedThread::Wait::kStopped);
  AllocatorFinder finder;
  const Result<PlacedClient> placed =
      PlaceClient(process.value(), {.ring_size = 65536}, &finder, &thread);
  EXPECT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_TRUE(thread.is_stopped());
  thread.Release();
}

}  // namespace
}  // namespace heapprofd
