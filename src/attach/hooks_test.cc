// Hooks in memory of a process that holds an image of ours, as far as they look at it.
#include "attach/hooks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "attach/client_image.h"
#include "attach/stopped_process.h"
#include "attach/thread/test_process.h"

namespace heapprofd {
namespace {

constexpr uint64_t kHooksSeed = 7;
constexpr size_t kCodeRoom = 64;  // bytes of a function
constexpr uint32_t kHookLength = 14;

class HooksTest : public testing::Test {
 protected:
  void SetUp() override {
    AttachState& state = *new (memory_ + ClientHeader().state) AttachState{};
    state.request.seed = kHooksSeed;
    memset(code_, 'o', 2 * kCodeRoom);
    child_.emplace();
    Result<RemoteProcess> process = RemoteProcess::Open(child_->pid());
    ASSERT_TRUE(process.ok()) << process.status().message();
    process_.emplace(std::move(process).value());
  }

  ~HooksTest() override { munmap(memory_, size_); }

  Hooks MakeHooks(uint64_t seed = kHooksSeed) const {
    std::vector<PatchRecord> patches(2);
    for (size_t i = 0; i < patches.size(); ++i) {
      patches[i].address = reinterpret_cast<uint64_t>(code_ + i * kCodeRoom);
      patches[i].kept = 1;  // of nothing: the byte before is not looked at
      patches[i].length = kHookLength;
      memset(patches[i].original, 'o', sizeof(patches[i].original));
      memset(patches[i].written, 'w', sizeof(patches[i].written));
    }
    return Hooks(&*process_, reinterpret_cast<uint64_t>(memory_), seed, patches);
  }

  Result<bool> PutIn(Hooks* hooks) const {
    HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(*process_));
    return hooks->PutIn(stopped.threads());
  }

  // What the process has of both functions.
  std::string Code() const {
    std::string code(2 * kCodeRoom, '\0');
    EXPECT_TRUE(
        process_->Read(reinterpret_cast<uint64_t>(code_), code.data(), code.size()));
    return code;
  }

  // As it is with `letter` at the begin of both.
  static std::string CodeWith(char letter) {
    const std::string one =
        std::string(kHookLength, letter) + std::string(kCodeRoom - kHookLength, 'o');
    return one + one;
  }

  uint32_t Word(uint64_t offset) const {
    uint32_t word = 0;
    EXPECT_TRUE(process_->ReadObject(
        reinterpret_cast<uint64_t>(memory_) + ClientHeader().wiped + offset, &word));
    return word;
  }

  void ChangeCode(size_t at) const {
    ASSERT_TRUE(process_->WriteObject(reinterpret_cast<uint64_t>(code_ + at), 'x'));
  }

  const size_t size_ = ClientHeader().total_size + 2 * kCodeRoom;
  std::byte* const memory_ = static_cast<std::byte*>(
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::byte* const code_ = memory_ + ClientHeader().total_size;
  std::optional<TestProcess> child_;
  std::optional<RemoteProcess> process_;
};

TEST_F(HooksTest, WhatIsPutInIsTakenOut) {
  Hooks hooks = MakeHooks();
  const Result<bool> is_in = PutIn(&hooks);
  ASSERT_TRUE(is_in.ok() && is_in.value()) << is_in.status().message();
  EXPECT_TRUE(hooks.are_in());
  EXPECT_EQ(Code(), CodeWith('w'));
  EXPECT_EQ(Word(0), 1u);
  EXPECT_TRUE(hooks.TakeOut().ok());
  EXPECT_FALSE(hooks.are_in());
  EXPECT_EQ(Code(), CodeWith('o'));
  EXPECT_EQ(Word(0), 0u);
}

TEST_F(HooksTest, NothingIsWrittenWhereTheCodeHasChanged) {
  ChangeCode(kCodeRoom);
  const std::string before = Code();
  Hooks hooks = MakeHooks();
  const Result<bool> is_in = PutIn(&hooks);
  EXPECT_EQ(is_in.status().message(), "cannot attach to process " +
                                          std::to_string(child_->pid()) +
                                          ": its code has just changed; try again");
  EXPECT_FALSE(hooks.are_in());
  EXPECT_EQ(Code(), before);
  EXPECT_EQ(Word(0), 0u);
}

TEST_F(HooksTest, NothingIsWrittenWhereAnotherEngineHasPlacedItsClient) {
  Hooks hooks = MakeHooks(kHooksSeed + 1);
  const Result<bool> is_in = PutIn(&hooks);
  EXPECT_EQ(is_in.status().message(),
            "cannot attach to process " + std::to_string(child_->pid()) +
                ": another heap_profile has attached to it meanwhile; try again");
  EXPECT_EQ(Code(), CodeWith('o'));
}

TEST_F(HooksTest, WhatSomebodyElseHasWrittenStays) {
  Hooks hooks = MakeHooks();
  ASSERT_TRUE(PutIn(&hooks).ok());
  ChangeCode(0);
  EXPECT_EQ(hooks.TakeOut().message(),
            "1 functions of process " + std::to_string(child_->pid()) +
                " were changed by somebody else meanwhile and were left so; our hooks "
                "in them do nothing");
  std::string expected = CodeWith('o');
  expected.replace(0, kHookLength, "x" + std::string(kHookLength - 1, 'w'));
  EXPECT_EQ(Code(), expected);
}

TEST_F(HooksTest, HooksThatAreLeftDoNothing) {
  Hooks hooks = MakeHooks();
  ASSERT_TRUE(PutIn(&hooks).ok());
  hooks.Leave();
  EXPECT_FALSE(hooks.are_in());
  EXPECT_EQ(Word(0), 0u);
  EXPECT_EQ(Code(), CodeWith('w'));
}

TEST_F(HooksTest, AForkedChildIsToldThatItsFilesAreReady) {
  Hooks hooks = MakeHooks();
  EXPECT_TRUE(hooks.TakeOver());
  EXPECT_TRUE(hooks.are_in());
  EXPECT_EQ(Word(kOwnFilesOffset), kHasOwnFiles);
}

}  // namespace
}  // namespace heapprofd
