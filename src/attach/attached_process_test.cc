#include "attach/attached_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <memory>
#include <string>
#include <utility>

#include "attach/thread/test_process.h"

namespace heapprofd {
namespace {

// As one does that has a /proc of its own, and so is not kept out by the lock.
TEST(AttachedProcessTest, WhoeverPlacesLastPutsTheHooksIn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  constexpr uint64_t kRingSize = 65536;
  const TestProcess process;
  AllocatorFinder finder;
  const auto place = [&] {
    auto placed =
        AttachedProcess::Place(process.pid(), {.ring_size = kRingSize}, &finder);
    EXPECT_TRUE(placed.ok()) << placed.status().message();
    return placed.ok() ? std::move(placed).value() : nullptr;
  };
  const auto first = place();
  ASSERT_NE(first, nullptr);
  const ScopedFd memory(
      open(("/proc/" + std::to_string(process.pid()) + "/mem").c_str(), O_RDWR));
  ASSERT_FALSE(flock(memory.get(), LOCK_EX | LOCK_NB) == 0);
  first->Unlock();
  const auto second = place();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->PutHooksIn().code(), StatusCode::kTryAgain);
  EXPECT_TRUE(second->PutHooksIn().ok());
  EXPECT_TRUE(second->TakeHooksOut().ok());
}

}  // namespace
}  // namespace heapprofd
