// Plans for this very process; nothing is written.
#include "attach/patch_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "attach/client_image.h"
#include "attach/prologue.h"

namespace heapprofd {
namespace {

Allocator AllocatorAt(const char* path, uint64_t malloc_at, uint64_t free_at) {
  return {.path = path,
          .functions = {{.hook = Hook::kMalloc, .address = malloc_at, .size = 0},
                        {.hook = Hook::kFree, .address = free_at, .size = 0}}};
}

template <typename Function>
uint64_t AddressOf(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

class PatchPlanTest : public testing::Test {
 protected:
  PatchPlan Plan(const std::vector<Allocator>& allocators, const AttachState& state) {
    const Result<RemoteProcess> process = RemoteProcess::Open(getpid());
    const std::vector<MapEntry> maps = process.value().Maps();
    ProcessCode code;
    code.allocators = allocators;
    const uint64_t near = AddressOf(&malloc);
    if (base_ == 0)
      base_ = FindGap(maps, near, ClientHeader().total_size).value_or(0);
    Result<PatchPlan> plan = MakePatchPlan(process.value(), maps, code, base_, state);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? std::move(plan).value() : PatchPlan();
  }

  uint64_t base_ = 0;
};

TEST_F(PatchPlanTest, AnAllocatorKeepsItsNumberWhenAnotherIsLoadedBeforeIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  const Allocator libc = AllocatorAt("libc.so.6", AddressOf(&malloc), AddressOf(&free));
  const Allocator other =
      AllocatorAt("other.so", AddressOf(&qsort), AddressOf(&strtoull));
  const PatchPlan first = Plan({libc}, AttachState{});
  ASSERT_EQ(first.state.patch_count, 2u);
  const uint32_t number = first.state.patches[0].hook;
  const uint64_t original = first.state.originals[0][static_cast<size_t>(Hook::kMalloc)];
  EXPECT_NE(original, 0u);
  const PatchPlan second = Plan({other, libc}, first.state);
  EXPECT_EQ(second.state.patches[0].hook, number);
  EXPECT_EQ(second.state.originals[0][static_cast<size_t>(Hook::kMalloc)], original);
  EXPECT_NE(second.state.originals[1][static_cast<size_t>(Hook::kMalloc)], 0u);
  const PatchPlan third = Plan({other}, first.state);  // libc's is not wanted any more
  EXPECT_EQ(third.state.originals[0][static_cast<size_t>(Hook::kMalloc)], original);
}

// Of an earlier session, for malloc: with fewer bytes than a jump has.
AttachState StateWithoutRoomForAJump() {
  const std::span<const uint8_t> code(reinterpret_cast<const uint8_t*>(&malloc), 32);
  const KeptBegin kept = KeepBegin(code, {.arguments = 1}).value();
  AttachState state{};
  state.patch_count = 1;
  PatchRecord& record = state.patches[0];
  record.address = AddressOf(&malloc) + kept.length;
  record.kept = static_cast<uint8_t>(kept.length);
  record.copied_at = kept.is_repeated ? record.kept : 0;
  record.length = 1;
  record.original[0] = code[kept.length];
  memcpy(record.begin, code.data(), kept.length);
  return state;
}

// What was never written is zeros, and would be put over the function.
TEST_F(PatchPlanTest, AJumpThatCouldNotBeMadeIsNotBelievedInByTheNextSession) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  const Allocator libc = AllocatorAt("libc.so.6", AddressOf(&malloc), AddressOf(&free));
  const PatchPlan first = Plan({libc}, StateWithoutRoomForAJump());
  ASSERT_EQ(first.unpatched.size(), 1u);
  EXPECT_EQ(first.state.patches[0].hook, 0u);
  const PatchPlan second = Plan({libc}, first.state);
  ASSERT_FALSE(second.patches.empty());
  for (const size_t index : second.patches) {
    const PatchRecord& record = second.state.patches[index];
    EXPECT_NE(std::count(record.written, record.written + record.length, 0),
              static_cast<ptrdiff_t>(record.length));
  }
}

}  // namespace
}  // namespace heapprofd
