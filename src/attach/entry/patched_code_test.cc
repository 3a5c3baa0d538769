// Patches in this process's own memory, with what probes, debuggers and others leave there.
#include "attach/entry/patched_code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "attach/prologue.h"

namespace heapprofd {
namespace {

constexpr uint8_t kBegin = 4;   // bytes that stay
constexpr uint8_t kLength = 8;  // bytes that are replaced

// A function: begin, what is replaced, and the rest.
class PatchedCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    process_.emplace(RemoteProcess::Open(getpid()).value());
    memset(code_.data(), 'r', code_.size());
    record_.address = reinterpret_cast<uint64_t>(code_.data()) + kBegin;
    record_.length = kLength;
    record_.kept = kBegin;
    memset(record_.begin, 'b', kBegin);
    memset(record_.original, 'o', kLength);
    memset(record_.written, 'w', kLength);
    memcpy(code_.data(), record_.begin, kBegin);
    memcpy(&code_[kBegin], record_.original, kLength);
  }

  PatchBytes Look() const { return LookAtPatch(*process_, record_); }

  std::string Code() const {
    return {reinterpret_cast<const char*>(code_.data()), kBegin + kLength + 1};
  }

  // A breakpoint `at` bytes from the function's begin; what was there.
  std::string PutBreakpoint(size_t at) {
    std::string before(reinterpret_cast<const char*>(&code_[at]), kBreakpoint.size());
    memcpy(&code_[at], kBreakpoint.data(), kBreakpoint.size());
    return before;
  }

#if defined(__x86_64__)
  static constexpr std::array<uint8_t, 1> kBreakpoint = {0xcc};
#else
  static constexpr std::array<uint8_t, 4> kBreakpoint = {0xa0, 0x00, 0x20, 0xd4};
#endif
  alignas(16) std::array<uint8_t, 64> code_{};
  PatchRecord record_{};
  std::optional<RemoteProcess> process_;
};

TEST_F(PatchedCodeTest, WhatIsWrittenIsTakenBackAndTheBeginIsNotTouched) {
  EXPECT_TRUE(IsUntouched(*process_, record_));
  EXPECT_EQ(Look(), PatchBytes::kOriginal);
  EXPECT_TRUE(WritePatch(*process_, record_));
  EXPECT_EQ(Code(), "bbbbwwwwwwwwr");
  EXPECT_EQ(Look(), PatchBytes::kWritten);
  EXPECT_TRUE(IsPatched(*process_, record_));
  EXPECT_TRUE(TakePatchBack(*process_, record_));
  EXPECT_EQ(Code(), "bbbboooooooor");
}

TEST_F(PatchedCodeTest, AProbeOnTheBeginIsSeenAndStays) {
  EXPECT_FALSE(IsProbed(*process_, record_));
  WritePatch(*process_, record_);
  PutBreakpoint(0);
  EXPECT_TRUE(IsProbed(*process_, record_));
  EXPECT_EQ(Look(), PatchBytes::kWritten);
  const std::string before = Code().substr(0, kBegin);
  EXPECT_TRUE(TakePatchBack(*process_, record_));
  EXPECT_EQ(Code(), before + "oooooooor");
}

TEST_F(PatchedCodeTest, AProbeInsideOfTheJumpStaysAndTheRestIsTheFilesAgain) {
  WritePatch(*process_, record_);
  PutBreakpoint(kBegin);
  EXPECT_FALSE(IsUntouched(*process_, record_));
  EXPECT_EQ(Look(), PatchBytes::kBroken);
  EXPECT_TRUE(IsPatched(*process_, record_));
  EXPECT_TRUE(TakePatchBack(*process_, record_));
  const std::string_view breakpoint(reinterpret_cast<const char*>(kBreakpoint.data()),
                                    kBreakpoint.size());
  std::string expected = "bbbboooooooor";
  expected.replace(kBegin, kBreakpoint.size(), breakpoint);
  EXPECT_EQ(Code(), expected);
  EXPECT_EQ(Look(), PatchBytes::kOriginal);
  EXPECT_FALSE(IsUntouched(*process_, record_)) << "nothing is written over it";
}

// As the kernel leaves the first byte when a probe goes from there.
TEST_F(PatchedCodeTest, BytesThatAreTheFilesAgainDoNotHideTheRestOfAJump) {
  WritePatch(*process_, record_);
  code_[kBegin] = 'o';
  EXPECT_EQ(Look(), PatchBytes::kBroken);
  EXPECT_TRUE(TakePatchBack(*process_, record_));
  EXPECT_EQ(Code(), "bbbboooooooor");
}

// Who has put other code there may put back what was there before: all of ours.
TEST_F(PatchedCodeTest, OtherCodeIsLeftAlone) {
  WritePatch(*process_, record_);
  code_[kBegin] = 'x';
  EXPECT_EQ(Look(), PatchBytes::kForeign);
  EXPECT_FALSE(TakePatchBack(*process_, record_));
  EXPECT_EQ(Code(), "bbbbxwwwwwwwr");
}

TEST_F(PatchedCodeTest, NothingIsWrittenToAFunctionsFirstByte) {
  record_.kept = 0;
  EXPECT_FALSE(WritePatch(*process_, record_));
  EXPECT_EQ(Code(), "bbbboooooooor");
}

TEST_F(PatchedCodeTest, WhatIsUnloadedIsGone) {
  record_.address = 4096;
  EXPECT_EQ(Look(), PatchBytes::kGone);
  EXPECT_FALSE(IsPatched(*process_, record_));
  EXPECT_FALSE(IsProbed(*process_, record_));
  EXPECT_TRUE(TakePatchBack(*process_, record_));
}

}  // namespace
}  // namespace heapprofd
