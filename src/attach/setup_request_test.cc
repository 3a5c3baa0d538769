#include "attach/setup_request.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

namespace heapprofd {
namespace {

constexpr SetupWishes kWishes{.ring_size = 65536, .children = ChildrenMode::kFollowed};

class SetupRequestTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<RemoteProcess> opened = RemoteProcess::Open(getpid());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    self_.emplace(std::move(opened).value());
  }

  std::optional<RemoteProcess> self_;
};

TEST_F(SetupRequestTest, ItSaysWhatTheSessionWants) {
  const SetupRequest request = MakeSetupRequest(*self_, kWishes, LibcAddresses(), {1, 2});
  EXPECT_EQ(request.ring_size, kWishes.ring_size);
  EXPECT_EQ(request.children, kWishes.children);
  EXPECT_EQ(request.islands[1], 2u);
  EXPECT_NE(request.seed, 0u);
  EXPECT_NE(request.seed, MakeSetupRequest(*self_, kWishes, LibcAddresses(), {}).seed);
}

TEST_F(SetupRequestTest, TheStackEndsWhereLibcSaysOrWillSayOrTheKernelBegan) {
  static uint64_t stack_end = 0;
  const LibcAddresses libc{.stack_end = reinterpret_cast<uint64_t>(&stack_end)};
  const SetupRequest early = MakeSetupRequest(*self_, kWishes, libc, {});
  EXPECT_EQ(early.stack_end, 0u);
  EXPECT_EQ(early.stack_end_at, libc.stack_end);
  stack_end = 12345;
  const SetupRequest late = MakeSetupRequest(*self_, kWishes, libc, {});
  EXPECT_EQ(late.stack_end, 12345u);
  EXPECT_EQ(late.stack_end_at, 0u);
  const SetupRequest without = MakeSetupRequest(*self_, kWishes, LibcAddresses(), {});
  EXPECT_GT(without.stack_end, reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
}

TEST_F(SetupRequestTest, AForkedChildKeepsWhatItsParentKnewAndMapsNoIslands) {
  SetupRequest parents{};
  parents.seed = 1;
  parents.stack_end = 2;
  parents.tid_offset = 3;
  parents.islands[0] = 4;
  const SetupRequest request = MakeChildRequest(*self_, kWishes, parents);
  EXPECT_EQ(request.stack_end, parents.stack_end);
  EXPECT_EQ(request.tid_offset, parents.tid_offset);
  EXPECT_EQ(request.keeps_counting, 1);
  EXPECT_EQ(request.islands[0], 0u);
  EXPECT_NE(request.seed, parents.seed);
  EXPECT_EQ(request.pid, static_cast<uint32_t>(getpid()));
}

}  // namespace
}  // namespace heapprofd
