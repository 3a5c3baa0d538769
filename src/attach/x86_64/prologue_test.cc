#include "attach/prologue.h"

#include <gtest/gtest.h>

#include <cstring>

namespace heapprofd {
namespace {

constexpr uint64_t kFunction = 0x7f0000001000;
constexpr uint64_t kGate = 0x7f0000801000;

std::vector<uint8_t> WithTail(std::vector<uint8_t> code) {
  code.resize(64, 0x90);
  return code;
}

int32_t Int32At(const std::vector<uint8_t>& code, size_t offset) {
  int32_t value = 0;
  memcpy(&value, code.data() + offset, sizeof(value));
  return value;
}

TEST(PrologueTest, PlainInstructionsAreCopiedWholeAndFollowedByAJumpBehindThem) {
  const std::vector<uint8_t> code =
      WithTail({0x55, 0x48, 0x89, 0xe5, 0x41, 0x54});  // push; mov; push
  const Result<MovedPrologue> moved = MovePrologue(code, kFunction, kGate);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_EQ(moved.value().length, 6u);
  const std::vector<uint8_t>& copy = moved.value().code;
  ASSERT_EQ(copy.size(), 11u);
  EXPECT_TRUE(std::equal(copy.begin(), copy.begin() + 6, code.begin()));
  EXPECT_EQ(copy[6], 0xe9);
  EXPECT_EQ(kGate + 11 + static_cast<uint64_t>(int64_t{Int32At(copy, 7)}), kFunction + 6);
}

TEST(PrologueTest, DataAddressedRelativeToTheInstructionStaysTheSame) {
  const std::vector<uint8_t> code =
      WithTail({0x80, 0x3d, 0x00, 0x10, 0x00, 0x00, 0x00});  // cmpb $0, 0x1000(%rip)
  const Result<MovedPrologue> moved = MovePrologue(code, kFunction, kGate);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_EQ(kGate + 7 + static_cast<uint64_t>(int64_t{Int32At(moved.value().code, 2)}),
            kFunction + 7 + 0x1000);
}

TEST(PrologueTest, AShortConditionalJumpBecomesALongOneToTheSamePlace) {
  const std::vector<uint8_t> code =
      WithTail({0x48, 0x85, 0xff, 0x74, 0x20});  // test %rdi,%rdi; je +0x20
  const Result<MovedPrologue> moved = MovePrologue(code, kFunction, kGate);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  const std::vector<uint8_t>& copy = moved.value().code;
  EXPECT_EQ(copy[3], 0x0f);
  EXPECT_EQ(copy[4], 0x84);
  EXPECT_EQ(kGate + 9 + static_cast<uint64_t>(int64_t{Int32At(copy, 5)}),
            kFunction + 5 + 0x20);
}

TEST(PrologueTest, ACallIsMovedAndComesBackToTheCopy) {
  const std::vector<uint8_t> code = WithTail(  // push; mov; call, as in libasan's free
      {0x53, 0x48, 0x89, 0xfb, 0xe8, 0x00, 0x10, 0x00, 0x00});
  const Result<MovedPrologue> moved = MovePrologue(code, kFunction, kGate);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_EQ(moved.value().length, 9u);
  const std::vector<uint8_t>& copy = moved.value().code;
  ASSERT_EQ(copy.size(), 14u);
  EXPECT_EQ(copy[4], 0xe8);
  EXPECT_EQ(kGate + 9 + static_cast<uint64_t>(int64_t{Int32At(copy, 5)}),
            kFunction + 9 + 0x1000);
  EXPECT_EQ(kGate + 14 + static_cast<uint64_t>(int64_t{Int32At(copy, 10)}),
            kFunction + 9);
}

TEST(PrologueTest, AFunctionThatIsAJumpItselfIsFollowed) {
  const std::vector<uint8_t> code = WithTail({0xe9, 0x00, 0x20, 0x00, 0x00});
  const Result<MovedPrologue> moved = MovePrologue(code, kFunction, kGate);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_EQ(kGate + 5 + static_cast<uint64_t>(int64_t{Int32At(moved.value().code, 1)}),
            kFunction + 5 + 0x2000);
}

TEST(PrologueTest, WhatCannotBeMovedIsRefused) {
  const std::vector<std::vector<uint8_t>> immovable = {
      {0xc3},                                            // ret: too short
      {0xcc, 0x55, 0x48, 0x89, 0xe5},                    // a breakpoint
      {0xe3, 0x10, 0x90, 0x90, 0x90, 0x90},              // jrcxz has no long form
      {0x55, 0x53, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xf9},  // a loop back into it
      {0x06, 0x06, 0x06},                                // no instruction
  };
  for (const std::vector<uint8_t>& code : immovable)
    EXPECT_FALSE(MovePrologue(WithTail(code), kFunction, kGate).ok()) << int{code[0]};
  EXPECT_NE(MovePrologue({}, kFunction, kGate)
                .status()
                .message()
                .find("its first instructions cannot be decoded"),
            std::string::npos);
}

TEST(PrologueTest, AGateOutOfReachIsRefused) {
  const std::vector<uint8_t> code = WithTail({0x55, 0x48, 0x89, 0xe5, 0x41, 0x54});
  EXPECT_FALSE(MovePrologue(code, kFunction, kFunction + (uint64_t{1} << 32)).ok());
  EXPECT_TRUE(MakeJump(kFunction, kFunction + (uint64_t{1} << 32), 5).empty());
}

TEST(PrologueTest, TheMarkerOfIndirectBranchesStaysInPlace) {
  EXPECT_EQ(SkippedPrefix(std::vector<uint8_t>{0xf3, 0x0f, 0x1e, 0xfa, 0x55}), 4u);
  EXPECT_EQ(SkippedPrefix(std::vector<uint8_t>{0xf3, 0x0f}), 0u);
}

TEST(PrologueTest, AFunctionThatDoesNothingIsKnownByItsBytes) {
  using Bytes = std::vector<uint8_t>;
  const Bytes nop = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00};
  const auto with_nop = [&nop](Bytes code) {
    code.insert(code.end(), nop.begin(), nop.end());
    return code;
  };
  EXPECT_TRUE(DoesNothing(with_nop({0xc3}), 8));
  EXPECT_TRUE(DoesNothing(with_nop({0xf3, 0x0f, 0x1e, 0xfa, 0xc3}), 8));
  EXPECT_TRUE(DoesNothing(Bytes{0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc}, 8));
  EXPECT_FALSE(DoesNothing(with_nop({0xc3, 0x55}), 8));        // another function
  EXPECT_FALSE(DoesNothing(with_nop({0x31, 0xc0, 0xc3}), 8));  // returns 0
  EXPECT_FALSE(DoesNothing(nop, 8));
  EXPECT_FALSE(DoesNothing(Bytes{0xc3, 0x90}, 8));  // not known
  EXPECT_FALSE(DoesNothing({}, 8));
}

}  // namespace
}  // namespace heapprofd
