// Functions that begin with every kind of instruction that must be written anew, and
// those of the C library: each does the same by way of its moved begin, which really runs.
#include "attach/prologue.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

asm(R"(
  .text
  .p2align 4
hpd_test_data: .quad 0x1122334455667788
  .word -7
  .p2align 3
  .double 2.5
hpd_test_adr: adr x0, hpd_test_data
  ldr x0, [x0]
  ret
hpd_test_adrp: adrp x0, hpd_test_data
  add x0, x0, :lo12:hpd_test_data
  ldr x0, [x0]
  ret
hpd_test_ldr_x: ldr x0, hpd_test_data
  ret
hpd_test_ldr_w: ldr w0, hpd_test_data
  ret
hpd_test_ldrsw: ldrsw x0, hpd_test_data + 8
  ret
hpd_test_ldr_d: ldr d0, hpd_test_data + 16
  fcvtzs x0, d0
  ret
hpd_test_prfm: prfm pldl1keep, hpd_test_data
  mov x0, #5
  ret
hpd_test_cbz: cbz x0, 1f
  mov x0, #10
  ret
1: mov x0, #20
  ret
hpd_test_tbnz: tbnz w0, #0, 1f
  mov x0, #30
  ret
1: mov x0, #40
  ret
hpd_test_b_cond: b.eq 1f
  mov x0, #50
  ret
1: mov x0, #60
  ret
hpd_test_b: b hpd_test_cbz
hpd_test_bl: bl hpd_test_adr
  br x9
hpd_test_plain: mov x0, #70
  ret
hpd_test_ret: ret
.arch_extension pauth
  .globl hpd_test_signed
hpd_test_signed: paciasp
  adr x0, hpd_test_data
  stp x29, x30, [sp, #-16]!
  ldr x0, [x0]
  ldp x29, x30, [sp], #16
  autiasp
  ret
// Calls with the flags of a comparison of `value` with 0, and a way back in x9 for one
// that calls.
hpd_test_call: stp x29, x30, [sp, #-16]!
  mov x2, x0
  mov x0, x1
  adr x9, 1f
  cmp x0, #0
  blr x2
1: ldp x29, x30, [sp], #16
  ret
)");

extern "C" {
uint64_t hpd_test_call(const void* function, uint64_t value);
extern const char hpd_test_adr[], hpd_test_adrp[], hpd_test_ldr_x[], hpd_test_ldr_w[],
    hpd_test_ldrsw[], hpd_test_ldr_d[], hpd_test_prfm[], hpd_test_cbz[], hpd_test_tbnz[],
    hpd_test_b_cond[], hpd_test_b[], hpd_test_bl[], hpd_test_plain[], hpd_test_ret[],
    hpd_test_signed[];
}

namespace heapprofd {
namespace {

constexpr size_t kPage = 4096;

uint64_t AddressOf(const void* function) {
  return reinterpret_cast<uint64_t>(function);
}

// A page within the reach of a jump from `near`.
uint8_t* RoomNear(const void* near) {
  constexpr int64_t kStep = int64_t{1} << 20;
  for (int64_t distance = kStep; distance < kJumpReach - kStep; distance += kStep) {
    for (const int64_t way : {distance, -distance}) {
      const uint64_t wanted =
          (AddressOf(near) + static_cast<uint64_t>(way)) & ~uint64_t{kPage - 1};
      void* page =
          mmap(reinterpret_cast<void*>(wanted), kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (AddressOf(page) == wanted)
        return static_cast<uint8_t*>(page);
      if (page != MAP_FAILED)
        munmap(page, kPage);
    }
  }
  return nullptr;
}

const KeptBegin nothing_kept{.length = 0, .undo = {}, .is_repeated = false};

// The function's begin, moved, with a jump to what follows it there. With a contract: as
// for a hook that stands behind the first instruction.
class Moved {
 public:
  explicit Moved(const void* function, const HookContract* contract = nullptr)
      : page_(RoomNear(function)) {
    if (page_ == nullptr)
      return;
    const std::span bytes(static_cast<const uint8_t*>(function), 16);
    KeptBegin kept = nothing_kept;
    if (contract != nullptr) {
      Result<KeptBegin> begin = KeepBegin(bytes, *contract);
      if (!begin.ok())
        return;
      kept = std::move(begin).value();
    }
    const Result<MovedPrologue> moved =
        MovePrologue(bytes, AddressOf(function), kept, AddressOf(page_));
    if (!moved.ok())
      return;
    memcpy(page_, moved.value().code.data(), moved.value().code.size());
    __builtin___clear_cache(reinterpret_cast<char*>(page_),
                            reinterpret_cast<char*>(page_ + kPage));
    is_there_ = true;
  }

  // It stays mapped: QEMU 7.2 runs at the same address what lay there before.
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  bool is_there() const { return is_there_; }

  const void* code() const { return page_; }

  template <typename Result, typename... Arguments>
  Result Call(Result (*)(Arguments...), Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Arguments...)>(page_)(arguments...);
  }

 private:
  uint8_t* page_;
  bool is_there_ = false;
};

TEST(PrologueTest, WhatReckonsWithItsOwnAddressDoesTheSameElsewhere) {
  for (const char* function :
       {hpd_test_adr, hpd_test_adrp, hpd_test_ldr_x, hpd_test_ldr_w, hpd_test_ldrsw,
        hpd_test_ldr_d, hpd_test_prfm, hpd_test_cbz, hpd_test_tbnz, hpd_test_b_cond,
        hpd_test_b, hpd_test_bl, hpd_test_plain, hpd_test_ret}) {
    const Moved moved(function);
    ASSERT_TRUE(moved.is_there()) << function - hpd_test_adr;
    for (const uint64_t value : {0u, 1u, 2u})
      EXPECT_EQ(hpd_test_call(moved.code(), value), hpd_test_call(function, value))
          << function - hpd_test_adr << " " << value;
  }
}

TEST(PrologueTest, TheCLibrarysAllocatorRunsByWayOfItsMovedBegins) {
  constexpr HookContract kOne{.arguments = 1, .frees = false};
  constexpr HookContract kTwo{.arguments = 2, .frees = false};
  constexpr HookContract kFrees{.arguments = 1, .frees = true};
  const Moved moved_malloc(reinterpret_cast<const void*>(&malloc), &kOne);
  const Moved moved_calloc(reinterpret_cast<const void*>(&calloc), &kTwo);
  const Moved moved_realloc(reinterpret_cast<const void*>(&realloc), &kTwo);
  const Moved moved_free(reinterpret_cast<const void*>(&free), &kFrees);
  const Moved moved_size(reinterpret_cast<const void*>(&malloc_usable_size));
  for (const Moved* moved :
       {&moved_malloc, &moved_calloc, &moved_realloc, &moved_free, &moved_size})
    ASSERT_TRUE(moved->is_there());
  void* block = moved_malloc.Call(&malloc, size_t{1000});
  EXPECT_GE(moved_size.Call(&malloc_usable_size, block), 1000u);
  EXPECT_EQ(moved_size.Call(&malloc_usable_size, static_cast<void*>(nullptr)), 0u);
  block = moved_realloc.Call(&realloc, block, size_t{100'000});
  ASSERT_NE(block, nullptr);
  memset(block, 1, 100'000);
  moved_free.Call(&free, block);
  auto* zeros = static_cast<char*>(moved_calloc.Call(&calloc, size_t{10}, size_t{10}));
  EXPECT_EQ(zeros[99], 0);
  moved_free.Call(&free, static_cast<void*>(zeros));
}

// The first instruction of a function, and whether a hook can stand behind it.
Result<KeptBegin> Keep(uint32_t word, const HookContract& contract) {
  return KeepBegin(std::span(reinterpret_cast<const uint8_t*>(&word), 4), contract);
}

std::vector<uint8_t> BytesOfWord(uint32_t word) {
  std::vector<uint8_t> bytes(sizeof(word));
  memcpy(bytes.data(), &word, sizeof(word));
  return bytes;
}

TEST(PrologueTest, AMarkerOfIndirectBranchesStaysInPlace) {
  for (const uint32_t bti : {0xd503245f, 0xd503249f, 0xd50324df})  // c, j, jc
    EXPECT_TRUE(Keep(bti, {}).value().undo.empty());
  EXPECT_EQ(Keep(0xd503233f, {}).value().undo, BytesOfWord(0xd50323bf));  // paciasp
  EXPECT_EQ(Keep(0xd503237f, {}).value().undo, BytesOfWord(0xd50323ff));  // pacibsp
}

TEST(PrologueTest, WhatWasPushedIsPoppedForTheHook) {
  const std::vector<std::pair<uint32_t, uint32_t>> pushes = {
      {0xa9bc7bfd, 0x910103ff},  // stp x29, x30, [sp, #-64]!: add sp, sp, #64
      {0xf81e0ffe, 0x910083ff},  // str x30, [sp, #-32]!: add sp, sp, #32
      {0xd10243ff, 0x910243ff},  // sub sp, sp, #144: add sp, sp, #144
      {0x6dbe23e9, 0x910083ff},  // stp d9, d8, [sp, #-32]!
  };
  for (const auto& [push, pop] : pushes) {
    const Result<KeptBegin> kept = Keep(push, {.arguments = 8});
    ASSERT_TRUE(kept.ok()) << std::hex << push;
    EXPECT_EQ(kept.value().undo, BytesOfWord(pop)) << std::hex << push;
    EXPECT_TRUE(kept.value().is_repeated);
  }
}

TEST(PrologueTest, WhatAHookDoesNotReadMayChange) {
  constexpr HookContract kOne{.arguments = 1, .frees = false};
  constexpr HookContract kFrees{.arguments = 3, .frees = true};
  for (const uint32_t word : {0x90000001u,     // adrp x1
                              0xaa0003e2u,     // mov x2, x0
                              0xf140041fu,     // cmp x0, #1, lsl #12
                              0x52800003u,     // mov w3, #0
                              0xd1000424u,     // sub x4, x1, #1
                              0x9bc27c23u,     // umulh x3, x1, x2
                              0xd503201fu}) {  // nop
    EXPECT_TRUE(Keep(word, kOne).value().is_repeated) << std::hex << word;
  }
  EXPECT_FALSE(Keep(0xaa0003e1, kFrees).value().is_repeated) << "mov x1, x0: passed on";
  EXPECT_FALSE(Keep(0xb4000880, kFrees).value().is_repeated) << "cbz x0";
  for (const uint32_t word : {0xb4000880u,     // cbz x0
                              0xb5000880u,     // cbnz x0
                              0xaa0103e0u,     // mov x0, x1
                              0xaa0003f3u,     // mov x19, x0
                              0xf9000001u,     // str x1, [x0]
                              0xa9007bfdu,     // stp x29, x30, [sp]
                              0x14000010u,     // b
                              0x94000010u,     // bl
                              0xd65f03c0u}) {  // ret
    EXPECT_EQ(Keep(word, kOne).status().message().find("its first instruction "), 0u)
        << std::hex << word;
  }
  EXPECT_FALSE(Keep(0xb5000880, kFrees).ok()) << "cbnz x0";
}

// stp; add; and a branch back to that.
TEST(PrologueTest, NothingMayBranchToTheJumpItself) {
  std::vector<uint32_t> words = {0xa9bc7bfd, 0x910003fd, 0xd503201f, 0x17fffffe};
  const auto plan = [&words] {
    const std::span bytes(reinterpret_cast<const uint8_t*>(words.data()), 16);
    return MovePrologue(bytes, 0x10000, Keep(words[0], {}).value(), 0x20000)
        .status()
        .message();
  };
  EXPECT_EQ(plan(), "a branch leads into its first instructions");
  words[3] = 0x17fffffd;  // to the begin
  EXPECT_EQ(plan(), "");
}

TEST(PrologueTest, AProbeAndAStubOfTheLinkerAreKnown) {
  const auto never = [](uint64_t) { return false; };
  const std::vector<uint8_t> brk = BytesOfWord(0xd42000a0);
  const std::vector<uint8_t> push = BytesOfWord(0xa9bc7bfd);
  EXPECT_EQ(ProbeLength(brk, push, 0, never), 4u);
  EXPECT_EQ(ProbeLength(push, push, 0, never), 0u);
  EXPECT_EQ(ProbeLength(brk, brk, 0, never), 0u);
  std::vector<uint8_t> stub = BytesOfWord(0xb0000010);        // adrp x16, one page on
  const std::vector<uint8_t> load = BytesOfWord(0xf9400a11);  // ldr x17, [x16, #16]
  stub.insert(stub.end(), load.begin(), load.end());
  EXPECT_EQ(StubOnward(stub, 0x10008)->slot, 0x11010u);
  EXPECT_EQ(JumpOnward(BytesOfWord(0x14000002), 0x10000)->target, 0x10008u);
  EXPECT_FALSE(JumpOnward(push, 0x10000));
  EXPECT_TRUE(IsLazyStub(BytesOfWord(0xa9bf7bf0)));
  EXPECT_FALSE(IsLazyStub({}));
}

TEST(PrologueTest, AFunctionThatDoesNothingIsKnownByItsBytes) {
  const auto does_nothing = [](const std::vector<uint32_t>& words) {
    const std::span bytes(reinterpret_cast<const uint8_t*>(words.data()),
                          words.size() * 4);
    return DoesNothing(bytes, 12);
  };
  constexpr uint32_t kRet = 0xd65f03c0;
  constexpr uint32_t kNop = 0xd503201f;
  EXPECT_TRUE(does_nothing({kRet, kNop, kNop}));
  EXPECT_TRUE(does_nothing({0xd503245f, kRet, kNop}));  // bti c
  EXPECT_TRUE(does_nothing({kRet, 0, 0}));
  EXPECT_FALSE(does_nothing({kRet, kNop, kRet}));        // another function
  EXPECT_FALSE(does_nothing({0x52800000, kRet, kNop}));  // returns 0
  EXPECT_FALSE(does_nothing({kRet, kNop}));              // not known
}

TEST(PrologueTest, WhatCannotBeMovedIsRefused) {
  constexpr uint64_t kFunction = 0x7f0000001000;
  constexpr uint64_t kGate = kFunction + 0x100000;
  const auto refusal = [](uint32_t word, uint64_t gate) {
    const std::span bytes(reinterpret_cast<const uint8_t*>(&word), 4);
    return MovePrologue(bytes, kFunction, nothing_kept, gate).status().message();
  };
  EXPECT_EQ(refusal(0x00000000, kGate), "its first instructions cannot be decoded");
  EXPECT_EQ(refusal(0xdc000000, kGate), "its first instructions cannot be decoded");
  EXPECT_EQ(refusal(0x5800001f, kGate), "it loads into no register");
  // A branch back, as far as it goes, does not reach there from further on.
  EXPECT_EQ(refusal(0x16000000, kGate), "its first branch leads too far");
  EXPECT_NE(refusal(0xd503201f, kFunction + (uint64_t{1} << 27)), "");
  EXPECT_EQ(refusal(0x90000000, kFunction + (uint64_t{1} << 33)),
            "it uses data that is too far away");
  EXPECT_EQ(MovePrologue({}, kFunction, nothing_kept, kGate).status().message(),
            "its first instructions cannot be decoded");
}

// As a hook is entered and left: the jump leads behind the signature.
TEST(PrologueTest, ASignatureIsTakenOffForTheHookAndPutOnAgain) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(hpd_test_signed), 64);
  constexpr HookContract kOne{.arguments = 1, .frees = false};
  const KeptBegin kept = KeepBegin(bytes, kOne).value();
  const Moved gate(hpd_test_signed, &kOne);
  ASSERT_TRUE(gate.is_there());
  uint8_t* const entry = RoomNear(hpd_test_signed);
  ASSERT_NE(entry, nullptr);
  std::vector<uint8_t> code(bytes.begin(), bytes.begin() + 4);  // as the function does
  const std::vector<uint8_t> onward = MakeFarJump(AddressOf(gate.code()));
  code.insert(code.end(), kept.undo.begin(), kept.undo.end());
  code.insert(code.end(), onward.begin(), onward.end());
  std::copy(code.begin(), code.end(), entry);
  __builtin___clear_cache(reinterpret_cast<char*>(entry),
                          reinterpret_cast<char*>(entry + kPage));
  EXPECT_EQ(hpd_test_call(entry, 0), 0x1122334455667788u);
  munmap(entry, kPage);
}

TEST(PrologueTest, WhereAJumpLeadsIsKnown) {
  const std::vector<uint8_t> jump = MakeJump(0x2000, 0x1000, kJumpLength);
  EXPECT_EQ(JumpTarget(jump, 0x2000), 0x1000u);
  const std::vector<uint8_t> nop = {0x1f, 0x20, 0x03, 0xd5};
  EXPECT_EQ(JumpTarget(nop, 0x2000), std::nullopt);
  EXPECT_EQ(JumpTarget({}, 0x2000), std::nullopt);
}

TEST(PrologueTest, AJumpIsOneInstruction) {
  const std::vector<uint8_t> jump = MakeJump(0x1000, 0x2000, kJumpLength);
  EXPECT_EQ(jump, (std::vector<uint8_t>{0x00, 0x04, 0x00, 0x14}));
  EXPECT_TRUE(MakeJump(0x1000, 0x1000 + (uint64_t{1} << 27), kJumpLength).empty());
}

}  // namespace
}  // namespace heapprofd
