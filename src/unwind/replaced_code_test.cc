// Rules must not outlive the code they were derived from, whoever notices that it is
// gone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <vector>

#include "unwind/stack_unwinder.h"

namespace heapprofd {
namespace {

constexpr size_t kSize = 4096;
constexpr uint64_t kSp = 0x4000;

class ReplacedCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    // Walled in, so that the kernel joins it with no other mapping.
    base_ = static_cast<char*>(
        mmap(nullptr, 3 * kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(base_, MAP_FAILED);
    code_ = base_ + kSize;
    Protect(PROT_READ | PROT_EXEC);
    ASSERT_TRUE(space_.Refresh().ok());
  }

  void TearDown() override { munmap(base_, 3 * kSize); }

  void Protect(int protection) { ASSERT_EQ(mprotect(code_, kSize, protection), 0); }

  void PutFileThere(off_t offset = 0) {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(
        mmap(code_, kSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset),
        code_);
    close(file);
  }

  uint64_t Address() const { return reinterpret_cast<uint64_t>(code_); }

  UnwoundStack UnwindFrom(uint64_t key, uint64_t bp) {
    return unwinder_.Unwind(
        {.cursor = {.key = key, .sp = kSp, .bp = bp}, .bytes = std::as_bytes(words_)}, 2,
        UnwindMode::kCached);
  }

  MappingId Id() const { return space_.Find(Address())->mapping; }

  char* base_ = nullptr;
  char* code_ = nullptr;
  std::vector<uint64_t> stack_ = std::vector<uint64_t>(8);
  std::span<uint64_t> words_{stack_};
  ModuleCache modules_{kOwnPatienceNs};
  std::vector<Mapping> mappings_;
  AddressSpace space_{getpid(), &modules_, &mappings_, /*files_ns=*/UINT64_MAX};
  StackUnwinder unwinder_{&space_};
};

TEST_F(ReplacedCodeTest, CodeThatOnlyVanishesIsNoReplacement) {
  Protect(PROT_NONE);
  EXPECT_TRUE(space_.Refresh().value().executable_removed);
  EXPECT_EQ(space_.replacements(), 0u);
}

TEST_F(ReplacedCodeTest, CodeThatComesBackKeepsItsMappingHoweverOftenItGoes) {
  const MappingId mapping = Id();
  const size_t count = mappings_.size();
  for (int i = 0; i < 20; ++i) {
    Protect(PROT_READ | PROT_WRITE);
    ASSERT_TRUE(space_.Refresh().ok());
    ASSERT_FALSE(space_.Find(Address()).has_value());
    Protect(PROT_READ | PROT_EXEC);
    ASSERT_TRUE(space_.Refresh().ok());
    ASSERT_EQ(Id(), mapping);
  }
  EXPECT_EQ(mappings_.size(), count);
  EXPECT_EQ(space_.replacements(), 0u);
}

TEST_F(ReplacedCodeTest, CodeThatBecomesWritableStaysTheSame) {
  Protect(PROT_READ | PROT_WRITE | PROT_EXEC);
  const RefreshOutcome outcome = space_.Refresh().value();
  EXPECT_FALSE(outcome.executable_removed || outcome.executable_added);
}

TEST_F(ReplacedCodeTest, OtherCodeAtThePlaceIsAReplacementAlsoLater) {
  Protect(PROT_NONE);
  ASSERT_TRUE(space_.Refresh().ok());
  ASSERT_TRUE(space_.Refresh().ok());
  PutFileThere();
  ASSERT_TRUE(space_.Refresh().ok());
  EXPECT_EQ(space_.replacements(), 1u);
  ASSERT_TRUE(space_.Refresh().ok());
  EXPECT_EQ(space_.replacements(), 1u);
}

TEST_F(ReplacedCodeTest, CodeThatReturnsToItsPlaceFromOtherCodeIsAReplacementToo) {
  const MappingId first = Id();
  PutFileThere();
  ASSERT_TRUE(space_.Refresh().ok());
  const uint64_t before = space_.replacements();
  ASSERT_EQ(mmap(code_, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            code_);
  ASSERT_TRUE(space_.Refresh().ok());
  Protect(PROT_READ | PROT_EXEC);
  ASSERT_TRUE(space_.Refresh().ok());
  EXPECT_GT(space_.replacements(), before);
  EXPECT_NE(Id(), first);
}

TEST_F(ReplacedCodeTest, CodeThatGrowsOrIsSplitIsNotReplaced) {
  ASSERT_EQ(mprotect(base_, 2 * kSize, PROT_READ | PROT_EXEC), 0);
  ASSERT_TRUE(space_.Refresh().ok());
  const MappingId whole = Id();
  EXPECT_EQ(mappings_[whole].start, reinterpret_cast<uint64_t>(base_));
  const size_t count = mappings_.size();
  for (int i = 0; i < 20; ++i) {
    Protect(PROT_READ | PROT_WRITE | PROT_EXEC);
    ASSERT_TRUE(space_.Refresh().ok());
    EXPECT_EQ(Id(), whole);
    EXPECT_EQ(space_.Find(Address() + 5)->rel_pc, kSize + 5);
    Protect(PROT_READ | PROT_EXEC);
    ASSERT_TRUE(space_.Refresh().ok());
    EXPECT_EQ(Id(), whole);
  }
  EXPECT_EQ(mappings_.size(), count);
  EXPECT_EQ(space_.replacements(), 0u);
}

TEST_F(ReplacedCodeTest, AnotherPartOfTheSameFileAtThePlaceIsAReplacement) {
  PutFileThere(0);
  ASSERT_TRUE(space_.Refresh().ok());
  const MappingId first = Id();
  const uint64_t before = space_.replacements();
  PutFileThere(kSize);
  ASSERT_TRUE(space_.Refresh().ok());
  EXPECT_NE(Id(), first);
  EXPECT_GT(space_.replacements(), before);
}

TEST_F(ReplacedCodeTest, AFileThatLosesItsNameStaysTheSameModule) {
  char name[] = "/tmp/replaced_code_test_XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, kSize), 0);
  ASSERT_EQ(mmap(code_, kSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0),
            code_);
  close(file);
  ASSERT_TRUE(space_.Refresh().ok());
  const MappingId mapping = Id();
  ASSERT_EQ(unlink(name), 0);
  const RefreshOutcome outcome = space_.Refresh().value();
  EXPECT_FALSE(outcome.executable_removed || outcome.executable_added);
  EXPECT_EQ(Id(), mapping);
}

TEST_F(ReplacedCodeTest, RulesAreForgottenThoughAnotherRefreshNoticedTheReplacement) {
  const UnwoundStack before = UnwindFrom(Address() + 100, 0);
  ASSERT_EQ(before.rules.size(), 1u);
  EXPECT_EQ(before.rules[0].second.kind, RuleKind::kStop);
  PutFileThere();
  ASSERT_TRUE(space_.Refresh().ok());
  // With a frame pointer that leads to known code, the same key has another rule now.
  stack_[3] = Address() + 200;
  const UnwoundStack after = UnwindFrom(Address() + 100, kSp + 16);
  ASSERT_GE(after.rules.size(), 1u);
  EXPECT_EQ(after.rules[0].second.kind, RuleKind::kBp);
}

TEST_F(ReplacedCodeTest, RulesUsedBeforeTheReplacementWasNoticedAreNotPublished) {
  const uint64_t key = Address() + 100;
  stack_[3] = Address() + 200;
  ASSERT_EQ(UnwindFrom(key, kSp + 16).rules[0].first, key);
  PutFileThere();
  void* late =
      mmap(nullptr, kSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(late, MAP_FAILED);
  stack_[3] = reinterpret_cast<uint64_t>(late) + 8;  // makes the unwinder read the maps
  const UnwoundStack stack = UnwindFrom(key, kSp + 16);
  ASSERT_EQ(stack.keys.size(), 2u);
  for (const auto& rule : stack.rules)
    EXPECT_NE(rule.first, key);
  munmap(late, kSize);
}

TEST_F(ReplacedCodeTest, AFramePointerMayLeadToCodeThatIsNotKnownYet) {
  void* late =
      mmap(nullptr, kSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(late, MAP_FAILED);
  stack_[3] = reinterpret_cast<uint64_t>(late) + 8;
  const UnwoundStack stack = UnwindFrom(Address() + 100, kSp + 16);
  EXPECT_EQ(stack.keys, (std::vector<uint64_t>{Address() + 100, stack_[3]}));
  munmap(late, kSize);
}

}  // namespace
}  // namespace heapprofd
