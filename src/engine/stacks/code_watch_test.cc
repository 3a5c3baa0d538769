// Code of this very process, as it comes and goes.
#include "engine/stacks/code_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <vector>

namespace heapprofd {
namespace {

class CodeWatchTest : public testing::Test {
 protected:
  CodeWatchTest()
      : client_(std::make_unique<ClientBlock>()),
        control_(std::make_unique<SessionControl>()),
        code_(getpid(), &modules_, &mappings_, /*files_ns=*/UINT64_MAX),
        watch_(client_.get(), control_.get(), &code_) {}

  void SetUp() override { ASSERT_TRUE(code_.Refresh().ok()); }

  // Executable, and of no file unless it is this program's.
  static void* Map(void* place, bool of_file) {
    const int file = of_file ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : -1;
    void* mapped = mmap(
        place, kPageSize, PROT_READ | PROT_EXEC,
        MAP_PRIVATE | (place != nullptr ? MAP_FIXED : 0) | (of_file ? 0 : MAP_ANONYMOUS),
        file, 0);
    if (file >= 0)
      close(file);
    return mapped;
  }

  ModuleCache modules_;
  std::vector<Mapping> mappings_;
  std::unique_ptr<ClientBlock> client_;
  std::unique_ptr<SessionControl> control_;
  AddressSpace code_;
  CodeWatch watch_;
};

TEST_F(CodeWatchTest, AnUnloadingIsLookedAtUntilItIsConfirmedAndNotAgain) {
  EXPECT_FALSE(watch_.LookAtUnloading());
  client_->ring.modules_epoch.store(3);
  ASSERT_EQ(watch_.LookAtUnloading(), 3u);
  EXPECT_EQ(control_->rules_epoch.load(), 0u);
  ASSERT_EQ(watch_.LookAtUnloading(), 3u);
  watch_.Confirm(3);
  EXPECT_EQ(control_->rules_epoch.load(), 3u);
  const uint64_t refreshes = code_.refreshes();
  EXPECT_FALSE(watch_.LookAtUnloading());
  EXPECT_EQ(code_.refreshes(), refreshes);
  EXPECT_FALSE(watch_.is_late());
}

TEST_F(CodeWatchTest, CodeThatIsGoneIsToldOnce) {
  void* place = Map(nullptr, /*of_file=*/false);
  ASSERT_NE(place, MAP_FAILED);
  ASSERT_TRUE(code_.Refresh().ok());
  EXPECT_FALSE(watch_.WasUnloaded());
  munmap(place, kPageSize);
  client_->ring.modules_epoch.store(1);
  ASSERT_TRUE(watch_.LookAtUnloading());
  EXPECT_TRUE(watch_.WasUnloaded());
  EXPECT_FALSE(watch_.WasUnloaded());
  EXPECT_FALSE(watch_.WasReplaced());
}

TEST_F(CodeWatchTest, CodeInThePlaceOfOtherCodeIsToldOnceWhoeverReadTheMaps) {
  void* place = Map(nullptr, /*of_file=*/false);
  ASSERT_NE(place, MAP_FAILED);
  ASSERT_TRUE(code_.Refresh().ok());
  EXPECT_FALSE(watch_.WasReplaced());
  ASSERT_EQ(Map(place, /*of_file=*/true), place);
  ASSERT_TRUE(code_.Refresh().ok());
  EXPECT_TRUE(watch_.WasReplaced());
  EXPECT_FALSE(watch_.WasReplaced());
  munmap(place, kPageSize);
}

TEST(CodeWatchOfNobodyTest, AProcessThatIsGoneIsNotConfirmed) {
  ModuleCache modules;
  std::vector<Mapping> mappings;
  AddressSpace code(0x7fffffff, &modules, &mappings);
  const auto client = std::make_unique<ClientBlock>();
  SessionControl control{};
  CodeWatch watch(client.get(), &control, &code);
  client->ring.modules_epoch.store(1);
  EXPECT_FALSE(watch.LookAtUnloading());
  EXPECT_FALSE(watch.is_late());
}

}  // namespace
}  // namespace heapprofd
