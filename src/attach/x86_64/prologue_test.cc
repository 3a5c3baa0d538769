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

using Bytes = std::vector<uint8_t>;

constexpr HookContract kMallocs{.arguments = 1, .frees = false};
constexpr HookContract kFrees{.arguments = 3, .frees = true};

// The plan of a function with this begin.
struct BeginPlan {
  Status status;
  KeptBegin kept;
  MovedPrologue moved;
};

BeginPlan PlanOf(const Bytes& code, const HookContract& contract = kMallocs) {
  BeginPlan plan;
  Result<KeptBegin> kept = KeepBegin(code, contract);
  if (!kept.ok())
    return {.status = kept.status(), .kept = {}, .moved = {}};
  plan.kept = std::move(kept).value();
  Result<MovedPrologue> moved = MovePrologue(code, kFunction, plan.kept, kGate);
  if (moved.ok())
    plan.moved = std::move(moved).value();
  else
    plan.status = moved.status();
  return plan;
}

TEST(PrologueTest, TheFirstInstructionStaysAndTheGateBeginsWithIt) {
  const BeginPlan plan = PlanOf(WithTail({0x41, 0x54, 0x55, 0x48, 0x89, 0xe5, 0x53}));
  ASSERT_TRUE(plan.status.ok()) << plan.status.message();  // push %r12; push; mov; push
  EXPECT_EQ(plan.kept.length, 2u);
  EXPECT_EQ(plan.kept.undo, (Bytes{0x48, 0x8d, 0x64, 0x24, 0x08}));  // lea 8(%rsp),%rsp
  EXPECT_EQ(plan.moved.length, 5u);
  EXPECT_EQ(plan.moved.copied_at, 2u);
  const Bytes& gate = plan.moved.code;
  ASSERT_EQ(gate.size(), 12u);
  EXPECT_EQ(Bytes(gate.begin(), gate.begin() + 7),
            (Bytes{0x41, 0x54, 0x55, 0x48, 0x89, 0xe5, 0x53}));
  EXPECT_EQ(gate[7], 0xe9);
  EXPECT_EQ(kGate + 12 + static_cast<uint64_t>(int64_t{Int32At(gate, 8)}), kFunction + 7);
}

TEST(PrologueTest, RoomOnTheStackIsGivenBackForTheHook) {
  const BeginPlan near = PlanOf(WithTail({0x48, 0x83, 0xec, 0x18}));  // sub $24,%rsp
  EXPECT_EQ(near.kept.undo, (Bytes{0x48, 0x8d, 0x64, 0x24, 0x18}));
  const BeginPlan far =
      PlanOf(WithTail({0x48, 0x81, 0xec, 0x00, 0x01, 0x00, 0x00}));  // sub $256,%rsp
  EXPECT_EQ(far.kept.undo, (Bytes{0x48, 0x8d, 0xa4, 0x24, 0x00, 0x01, 0x00, 0x00}));
}

TEST(PrologueTest, DataAddressedRelativeToTheInstructionStaysTheSame) {
  const BeginPlan plan =
      PlanOf(WithTail({0x80, 0x3d, 0x00, 0x10, 0x00, 0x00, 0x00}));  // cmpb $0,4096(%rip)
  ASSERT_TRUE(plan.status.ok()) << plan.status.message();
  EXPECT_EQ(plan.kept.length, 7u);
  EXPECT_TRUE(plan.kept.undo.empty());
  EXPECT_EQ(kGate + 7 + static_cast<uint64_t>(int64_t{Int32At(plan.moved.code, 2)}),
            kFunction + 7 + 0x1000);
}

TEST(PrologueTest, AShortConditionalJumpBecomesALongOneToTheSamePlace) {
  const BeginPlan plan = PlanOf(WithTail({0x48, 0x85, 0xff, 0x74, 0x20}),
                                kFrees);  // test %rdi,%rdi; je +0x20
  ASSERT_TRUE(plan.status.ok()) << plan.status.message();
  EXPECT_EQ(plan.kept.length, 3u);
  EXPECT_EQ(plan.moved.length, 5u);
  const Bytes& gate = plan.moved.code;
  EXPECT_EQ(gate[3], 0x0f);
  EXPECT_EQ(gate[4], 0x84);
  EXPECT_EQ(kGate + 9 + static_cast<uint64_t>(int64_t{Int32At(gate, 5)}),
            kFunction + 5 + 0x20);
}

TEST(PrologueTest, ACallIsMovedAndComesBackToTheCopy) {
  const BeginPlan plan = PlanOf(WithTail(  // push; mov; call, as in libasan's free
      {0x53, 0x48, 0x89, 0xfb, 0xe8, 0x00, 0x10, 0x00, 0x00}));
  ASSERT_TRUE(plan.status.ok()) << plan.status.message();
  EXPECT_EQ(plan.kept.length + plan.moved.length, 9u);
  const Bytes& gate = plan.moved.code;
  ASSERT_EQ(gate.size(), 14u);
  EXPECT_EQ(gate[4], 0xe8);
  EXPECT_EQ(kGate + 9 + static_cast<uint64_t>(int64_t{Int32At(gate, 5)}),
            kFunction + 9 + 0x1000);
  EXPECT_EQ(kGate + 14 + static_cast<uint64_t>(int64_t{Int32At(gate, 10)}),
            kFunction + 9);
}

TEST(PrologueTest, AJumpKeepsItsOpcodeAndTheGateLeadsWhereItLed) {
  const BeginPlan plan = PlanOf(WithTail({0xe9, 0x00, 0x20, 0x00, 0x00}));
  ASSERT_TRUE(plan.status.ok()) << plan.status.message();
  EXPECT_EQ(plan.kept.length, 1u);
  EXPECT_EQ(plan.moved.length, kOperandLength);
  EXPECT_EQ(kGate + 5 + static_cast<uint64_t>(int64_t{Int32At(plan.moved.code, 1)}),
            kFunction + 5 + 0x2000);
  const Bytes operand = MakeJump(kFunction + 1, kGate, kOperandLength);
  ASSERT_EQ(operand.size(), kOperandLength);
  EXPECT_EQ(kFunction + 5 + static_cast<uint64_t>(int64_t{Int32At(operand, 0)}), kGate);
}

TEST(PrologueTest, WhatAHookDoesNotReadMayChange) {
  const std::vector<Bytes> harmless = {
      {0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00},  // mov 4096(%rip),%rax
      {0x48, 0x89, 0xf0},                          // mov %rsi,%rax
      {0x48, 0x89, 0xf9},                          // mov %rdi,%rcx
      {0x31, 0xc0},                                // xor %eax,%eax
      {0x0f, 0x1f, 0x44, 0x00, 0x00},              // nopl
      {0x66, 0x0f, 0xef, 0xc0},                    // pxor %xmm0,%xmm0
  };
  for (const Bytes& code : harmless) {
    const BeginPlan plan = PlanOf(WithTail(code));
    EXPECT_TRUE(plan.status.ok()) << int{code[0]} << plan.status.message();
    EXPECT_EQ(plan.kept.length, code.size());
    EXPECT_TRUE(plan.kept.undo.empty());
    EXPECT_TRUE(plan.kept.is_repeated);
  }
}

TEST(PrologueTest, WhatAHookOnlyPassesOnMayChangeOnce) {
  const Bytes code = WithTail({0x48, 0x8d, 0x74, 0x16, 0x1f});  // lea 31(%rsi,%rdx),%rsi
  const BeginPlan plan = PlanOf(code, kFrees);
  ASSERT_TRUE(plan.status.ok()) << plan.status.message();
  EXPECT_FALSE(plan.kept.is_repeated);
  EXPECT_EQ(plan.moved.copied_at, 0u);
  EXPECT_EQ(plan.moved.code[0], 0x90);
  EXPECT_FALSE(PlanOf(code, {.arguments = 3, .frees = false}).status.ok());
  EXPECT_FALSE(PlanOf(WithTail({0x48, 0x83, 0xc6, 0x1f}), kFrees).status.ok())
      << "add changes flags, which are not set again";
}

TEST(PrologueTest, WhatCannotStayOrMoveIsRefused) {
  const std::vector<Bytes> immovable = {
      {0xc3},                                            // ret: too short
      {0x55, 0xc3},                                      // the second one is
      {0xcc, 0x55, 0x48, 0x89, 0xe5},                    // a breakpoint
      {0xeb, 0x10},                                      // a short jump
      {0x74, 0x10},                                      // je
      {0xff, 0x25, 0x00, 0x10, 0x00, 0x00},              // jmp *4096(%rip)
      {0xe8, 0x00, 0x10, 0x00, 0x00},                    // call
      {0x55, 0xe3, 0x10, 0x90, 0x90, 0x90, 0x90},        // jrcxz has no long form
      {0x55, 0xff, 0xd0, 0x90, 0x90, 0x90},              // call *%rax: returns into it
      {0x55, 0x53, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xf9},  // a loop to the second one
      {0x06, 0x06, 0x06},                                // no instruction
      {0x53, 0x06, 0x06},                                // the second one is none
      {0x48, 0x89, 0xfb},                                // mov %rdi,%rbx
      {0x48, 0x83, 0xc7, 0x10},                          // add $16,%rdi
      {0x48, 0x89, 0x05, 0x00, 0x10, 0x00, 0x00},        // mov %rax,4096(%rip)
      {0x48, 0xff, 0x05, 0x00, 0x10, 0x00, 0x00},        // incq 4096(%rip)
      {0xfd},                                            // std
      {0x5f},                                            // pop %rdi
      {0x0f, 0x05},                                      // syscall
  };
  for (const Bytes& code : immovable)
    EXPECT_FALSE(PlanOf(WithTail(code)).status.ok())
        << int{code[0]} << ' ' << code.size();
  EXPECT_EQ(PlanOf({}).status.message(), "its first instructions cannot be decoded");
}

// A marker with a loop behind it.
TEST(PrologueTest, NothingMayBranchToTheJumpItself) {
  const Bytes marked = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x53, 0x90, 0x90, 0x90, 0x90};
  EXPECT_TRUE(PlanOf(WithTail(marked)).status.ok());
  Bytes looping = marked;
  looping.insert(looping.end(), {0xeb, 0xf8});  // to the first one behind the marker
  EXPECT_EQ(PlanOf(WithTail(looping)).status.message(),
            "a branch leads into its first instructions");
}

TEST(PrologueTest, AGateOutOfReachIsRefused) {
  const Bytes code = WithTail({0x55, 0x48, 0x89, 0xe5, 0x41, 0x54});
  const KeptBegin kept = KeepBegin(code, kMallocs).value();
  const uint64_t far = kFunction + (uint64_t{1} << 32);
  EXPECT_FALSE(MovePrologue(code, kFunction, kept, far).ok());
  EXPECT_TRUE(MakeJump(kFunction, far, 5).empty());
  EXPECT_TRUE(MakeJump(kFunction, far, kOperandLength).empty());
}

TEST(PrologueTest, TheMarkerOfIndirectBranchesStaysInPlace) {
  const BeginPlan plan = PlanOf(WithTail({0xf3, 0x0f, 0x1e, 0xfa, 0x55}));
  EXPECT_EQ(plan.kept.length, 4u);
  EXPECT_TRUE(plan.kept.undo.empty());
}

// As the kernel leaves it: a breakpoint, or a call to its own code in place of a
// no-operation.
TEST(PrologueTest, AProbeIsKnownByWhatTheFileHas) {
  const auto is_kernels = [](uint64_t address) { return address == kGate; };
  const Bytes push = {0x55, 0x53};
  const Bytes nop = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  EXPECT_EQ(ProbeLength(Bytes{0xcc, 0x53}, push, kFunction, is_kernels), 1u);
  EXPECT_EQ(ProbeLength(push, push, kFunction, is_kernels), 0u);
  EXPECT_EQ(ProbeLength(Bytes{0xcc}, Bytes{0xcc}, kFunction, is_kernels), 0u);
  Bytes call = MakeJump(kFunction, kGate, 5);
  call[0] = 0xe8;
  EXPECT_EQ(ProbeLength(call, nop, kFunction, is_kernels), 5u);
  EXPECT_EQ(ProbeLength(call, nop, kFunction + 1, is_kernels), 0u) << "leads elsewhere";
  EXPECT_EQ(ProbeLength(call, push, kFunction, is_kernels), 0u);
}

TEST(PrologueTest, JumpsAndStubsOfTheLinkerAreFollowed) {
  const auto at = [](const std::optional<OnwardJump>& onward) {
    return onward ? onward->target + onward->slot : 0;
  };
  EXPECT_EQ(at(JumpOnward(Bytes{0xe9, 0x10, 0, 0, 0}, kFunction)), kFunction + 0x15);
  EXPECT_EQ(at(JumpOnward(Bytes{0xeb, 0xfe}, kFunction)), kFunction);
  const Bytes stub = {0xff, 0x25, 0x00, 0x10, 0x00, 0x00};
  EXPECT_EQ(at(JumpOnward(stub, kFunction)), kFunction + 0x1006);
  Bytes marked = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2};  // endbr64; bnd jmp
  marked.insert(marked.end(), stub.begin(), stub.end());
  EXPECT_EQ(at(StubOnward(marked, kFunction)), kFunction + 0x100b);
  EXPECT_FALSE(JumpOnward(marked, kFunction)) << "a function that begins with a marker";
  EXPECT_FALSE(JumpOnward(Bytes{0x55}, kFunction));
  EXPECT_FALSE(StubOnward(Bytes{0xff, 0x25}, kFunction));
  EXPECT_TRUE(IsLazyStub(Bytes{0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0}));
  EXPECT_FALSE(IsLazyStub(Bytes{0x68, 1, 0, 0, 0, 0x55}));
  EXPECT_FALSE(IsLazyStub({}));
}

TEST(PrologueTest, AFunctionThatDoesNothingIsKnownByItsBytes) {
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
