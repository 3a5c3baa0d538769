// aarch64: instructions that reckon with their own address are written anew for another
// place; all others are copied. x16 and x17 may change there, as they may in every call
// (the linker's veneers use them).
#include "attach/prologue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace heapprofd {
namespace {

constexpr uint32_t kBranch = 0x14000000;      // b
constexpr uint32_t kBranchLink = 0x94000000;  // bl
constexpr uint32_t kAdrp = 0x90000000;
constexpr uint32_t kAdd = 0x91000000;  // immediate, 64 bits
constexpr uint32_t kPaciasp = 0xd503233f;
constexpr uint32_t kPacibsp = 0xd503237f;
constexpr uint32_t kAutiasp = 0xd50323bf;
constexpr uint32_t kAutibsp = 0xd50323ff;
constexpr unsigned kScratch = 17;

Status Immovable(const char* why) {
  return Status(StatusCode::kUnavailable, why);
}

// `width` bits of `word` from `low` on, with their sign.
int64_t SignedBits(uint32_t word, unsigned low, unsigned width) {
  return static_cast<int64_t>(uint64_t{word} << (64 - low - width)) >> (64 - width);
}

// Words of code that are to run at `address`.
class Writer {
 public:
  explicit Writer(uint64_t address) : address_(address) {}

  uint64_t here() const { return address_ + words_.size() * 4; }

  void Add(uint32_t word) { words_.push_back(word); }

  // b or bl.
  bool AddBranch(uint32_t kind, uint64_t target) {
    const auto distance = static_cast<int64_t>(target - here());
    if (distance <= -kJumpReach || distance >= kJumpReach)
      return false;
    Add(kind | (static_cast<uint32_t>(distance / 4) & 0x3ffffff));
    return true;
  }

  // adrp and add: `value` into a register.
  bool AddAddress(unsigned reg, uint64_t value) {
    if (!AddPage(reg, value))
      return false;
    Add(kAdd | static_cast<uint32_t>(value & 0xfff) << 10 | reg << 5 | reg);
    return true;
  }

  bool AddPage(unsigned reg, uint64_t value) {
    const int64_t pages =
        static_cast<int64_t>(value >> 12) - static_cast<int64_t>(here() >> 12);
    constexpr int64_t kReach = int64_t{1} << 20;
    if (pages < -kReach || pages >= kReach)
      return false;
    const auto bits = static_cast<uint32_t>(pages);
    Add(kAdrp | (bits & 3) << 29 | (bits >> 2 & 0x7ffff) << 5 | reg);
    return true;
  }

  std::vector<uint8_t> Bytes() const {
    std::vector<uint8_t> bytes(words_.size() * 4);
    memcpy(bytes.data(), words_.data(), bytes.size());
    return bytes;
  }

 private:
  uint64_t address_;
  std::vector<uint32_t> words_;
};

// The same decision, two words on, and from there the way to the target.
Status MoveConditional(uint32_t word, unsigned width, uint64_t target, Writer* to) {
  const uint32_t mask = ((1u << width) - 1) << 5;
  to->Add((word & ~mask) | 2u << 5);
  to->Add(kBranch | 2);
  return to->AddBranch(kBranch, target) ? Status()
                                        : Immovable("its first branch leads too far");
}

// ldr (literal) of any register: from the same place by its address.
Status MoveLoad(uint32_t word, uint64_t target, Writer* to) {
  const unsigned reg = word & 31;
  const bool is_vector = (word >> 26 & 1) != 0;
  const uint32_t size = word >> 30;
  if (!is_vector && size == 3)  // prfm: a hint
    return {};
  const unsigned base = is_vector ? kScratch : reg;
  if (base == 31)
    return Immovable("it loads into no register");
  if (!to->AddAddress(base, target))
    return Immovable("it uses data that is too far away");
  // ldr, unsigned offset 0: w, x, sw; s, d, q.
  constexpr std::array<uint32_t, 3> kGeneral = {0xb9400000, 0xf9400000, 0xb9800000};
  constexpr std::array<uint32_t, 3> kVector = {0xbd400000, 0xfd400000, 0x3dc00000};
  if (size > 2)
    return Immovable("its first instructions cannot be decoded");
  to->Add((is_vector ? kVector : kGeneral)[size] | base << 5 | reg);
  return {};
}

Status MoveInstruction(uint32_t word, uint64_t from, Writer* to) {
  const auto at = [from](int64_t distance) {
    return from + static_cast<uint64_t>(distance);
  };
  if ((word & 0x7c000000) == kBranch) {  // b, bl
    return to->AddBranch(word & 0xfc000000, at(SignedBits(word, 0, 26) * 4))
               ? Status()
               : Immovable("its first branch leads too far");
  }
  if ((word & 0xff000000) == 0x54000000 ||
      (word & 0x7e000000) == 0x34000000)  // b.cond, cbz
    return MoveConditional(word, 19, at(SignedBits(word, 5, 19) * 4), to);
  if ((word & 0x7e000000) == 0x36000000)  // tbz, tbnz
    return MoveConditional(word, 14, at(SignedBits(word, 5, 14) * 4), to);
  if ((word & 0x3b000000) == 0x18000000)  // ldr (literal)
    return MoveLoad(word, at(SignedBits(word, 5, 19) * 4), to);
  if ((word & 0x1f000000) == 0x10000000) {  // adr, adrp
    const bool is_page = word >> 31 != 0;
    const int64_t distance = SignedBits(word, 5, 19) * 4 + (word >> 29 & 3);
    const uint64_t value =
        is_page ? (from & ~uint64_t{4095}) + static_cast<uint64_t>(distance * 4096)
                : at(distance);
    const bool is_in_reach =
        is_page ? to->AddPage(word & 31, value) : to->AddAddress(word & 31, value);
    return is_in_reach ? Status() : Immovable("it uses data that is too far away");
  }
  to->Add(word);
  return {};
}

std::optional<uint32_t> WordAt(std::span<const uint8_t> bytes) {
  uint32_t word = 0;
  if (bytes.size() < sizeof(word))
    return std::nullopt;
  memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

constexpr unsigned kStackRegister = 31;

std::vector<uint8_t> BytesOf(uint32_t word) {
  Writer writer(0);
  writer.Add(word);
  return writer.Bytes();
}

// Where indirect branches may arrive: bti c, j, jc, and paciasp and pacibsp, which sign.
size_t MarkerLength(std::span<const uint8_t> bytes) {
  const std::optional<uint32_t> first = WordAt(bytes);
  const bool is_marker = first && (*first & ~0xc0u) == 0xd503241f && *first != 0xd503241f;
  return is_marker || first == kPaciasp || first == kPacibsp ? 4 : 0;
}

// By how much an instruction moves the stack pointer down that does nothing else but store
// there, in bytes; 0: another one.
uint64_t PushedBytes(uint32_t word) {
  if ((word >> 5 & 31) != kStackRegister)
    return 0;
  int64_t moved = 0;
  if ((word & 0xffc00000) == 0xa9800000 || (word & 0xffc00000) == 0x6d800000)
    moved = SignedBits(word, 15, 7) * 8;  // stp x or d, before: [sp, #n]!
  else if ((word & 0xffc00000) == 0xad800000)
    moved = SignedBits(word, 15, 7) * 16;  // stp q
  else if ((word & 0xffe00c00) == 0xf8000c00)
    moved = SignedBits(word, 12, 9);  // str x
  else if ((word & 0xffc0001f) == 0xd100001f)
    return word >> 10 & 0xfff;  // sub sp, sp, #n
  return moved < 0 ? static_cast<uint64_t>(-moved) : 0;
}

// The register that an instruction writes which neither branches nor stores; kFlags: none
// but flags. nullopt: another instruction.
constexpr unsigned kFlags = 31;

std::optional<unsigned> WrittenRegister(uint32_t word) {
  const unsigned reg = word & 31;
  const bool sets_flags_only =
      reg == 31 && ((word & 0x7f800000) == 0x71000000 ||  // cmp, immediate
                    (word & 0x7f200000) == 0x6b000000 ||  // cmp, register
                    (word & 0x7f800000) == 0x72000000 ||  // tst, immediate
                    (word & 0x7f200000) == 0x6a000000);   // tst, register
  if (sets_flags_only || word == 0xd503201f)              // nop
    return kFlags;
  const bool writes_one = (word & 0x1f000000) == 0x10000000 ||  // adr, adrp
                          (word & 0x7fe0ffe0) == 0x2a0003e0 ||  // mov, register
                          (word & 0x1f800000) == 0x12800000 ||  // movz, movn
                          (word & 0x3f000000) == 0x11000000 ||  // add, sub, immediate
                          (word & 0x3f200000) == 0x0b000000 ||  // add, sub, register
                          (word & 0x7f000000) == 0x1b000000 ||  // madd, umulh
                          (word & 0xbfc00000) == 0xb9400000 ||  // ldr, by a register
                          (word & 0xbf000000) == 0x18000000 ||  // ldr (literal)
                          (word & 0xffffffe0) == 0xd53bd040;    // mrs, tpidr_el0
  return writes_one && reg != 31 ? std::optional(reg) : std::nullopt;
}

Result<KeptBegin> KeepInstruction(uint32_t word, const HookContract& contract) {
  KeptBegin kept{.length = 4, .undo = {}, .is_repeated = true};
  if (const uint64_t pushed = PushedBytes(word); pushed != 0) {
    kept.undo = BytesOf(kAdd | static_cast<uint32_t>(pushed & 0xfff) << 10 |
                        kStackRegister << 5 | kStackRegister);
    return kept;
  }
  // cbz x0: what is led away does nothing that a hook would see.
  if (contract.frees && (word & 0xff00001f) == 0xb4000000) {
    kept.is_repeated = false;
    return kept;
  }
  const std::optional<unsigned> reg = WrittenRegister(word);
  if (!reg)
    return Immovable("its first instruction is a branch, or changes what a hook needs");
  constexpr unsigned kArguments = 8;
  constexpr unsigned kLastScratch = 17;
  const bool is_free = *reg == kFlags || (*reg >= kArguments && *reg <= kLastScratch) ||
                       (*reg < kArguments && *reg >= contract.arguments);
  if (!is_free && (*reg == 0 || *reg >= kArguments || !contract.frees))
    return Immovable("its first instruction changes what a hook needs");
  kept.is_repeated = is_free;
  return kept;
}

// Where an instruction branches to by itself; nullopt: it does not.
std::optional<uint64_t> BranchTarget(uint32_t word, uint64_t address) {
  const auto at = [address](int64_t words) {
    return address + static_cast<uint64_t>(words * 4);
  };
  if ((word & 0x7c000000) == kBranch)
    return at(SignedBits(word, 0, 26));
  if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
    return at(SignedBits(word, 5, 19));
  if ((word & 0x7e000000) == 0x36000000)
    return at(SignedBits(word, 5, 14));
  return std::nullopt;
}

}  // namespace

bool BranchesTo(std::span<const uint8_t> bytes, uint64_t address, uint64_t target) {
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes.size(); at += sizeof(uint32_t)) {
    if (BranchTarget(*WordAt(bytes.subspan(at)), address + at) == target)
      return true;
  }
  return false;
}

Result<KeptBegin> KeepBegin(std::span<const uint8_t> bytes,
                            const HookContract& contract) {
  const std::optional<uint32_t> first = WordAt(bytes);
  if (!first || *first >> 16 == 0)  // udf: never code
    return Immovable("its first instructions cannot be decoded");
  if (MarkerLength(bytes) == 0)
    return KeepInstruction(*first, contract);
  KeptBegin kept{.length = 4, .undo = {}, .is_repeated = true};
  // A hook's return address is not signed: it is the same sp, so the signature can be
  // taken off and put on again.
  if (first == kPaciasp || first == kPacibsp)
    kept.undo = BytesOf(first == kPaciasp ? kAutiasp : kAutibsp);
  return kept;
}

size_t BreakpointLength(std::span<const uint8_t> bytes) {
  const std::optional<uint32_t> first = WordAt(bytes);
  return first && (*first & 0xffe0001f) == 0xd4200000 ? sizeof(*first) : 0;  // brk
}

size_t ProbeLength(std::span<const uint8_t> memory,
                   std::span<const uint8_t> file,
                   uint64_t /*address*/,
                   const std::function<bool(uint64_t)>& /*is_probes_code*/) {
  return BreakpointLength(file) == 0 ? BreakpointLength(memory) : 0;
}

// adrp x16; ldr x17, [x16, #n]; add x16, x16, #n; br x17.
std::optional<OnwardJump> StubOnward(std::span<const uint8_t> bytes, uint64_t address) {
  const size_t at = MarkerLength(bytes);
  const std::optional<uint32_t> page = WordAt(bytes.subspan(std::min(at, bytes.size())));
  const std::optional<uint32_t> load =
      WordAt(bytes.subspan(std::min(at + 4, bytes.size())));
  constexpr unsigned kBase = 16;
  if (!page || !load || (*page & 0x9f00001f) != (kAdrp | kBase) ||
      (*load & 0xffc003ff) != (0xf9400000 | kBase << 5 | kScratch))
    return std::nullopt;
  const int64_t pages = SignedBits(*page, 5, 19) * 4 + (*page >> 29 & 3);
  const uint64_t base =
      ((address + at) & ~uint64_t{4095}) + static_cast<uint64_t>(pages * 4096);
  return OnwardJump{.target = 0, .slot = base + (*load >> 10 & 0xfff) * 8};
}

std::optional<OnwardJump> JumpOnward(std::span<const uint8_t> bytes, uint64_t address) {
  if (const std::optional<uint64_t> target = JumpTarget(bytes, address))
    return OnwardJump{.target = *target, .slot = 0};
  return MarkerLength(bytes) == 0 ? StubOnward(bytes, address) : std::nullopt;
}

// stp x16, x30, [sp, #-16]!
bool IsLazyStub(std::span<const uint8_t> bytes) {
  return WordAt(bytes.subspan(MarkerLength(bytes))) == 0xa9bf7bf0;
}

bool DoesNothing(std::span<const uint8_t> bytes, size_t length) {
  constexpr uint32_t kRet = 0xd65f03c0;
  constexpr uint32_t kNop = 0xd503201f;
  bool has_returned = false;
  for (size_t at = MarkerLength(bytes); at < length; at += sizeof(uint32_t)) {
    const std::optional<uint32_t> word =
        WordAt(bytes.subspan(std::min(at, bytes.size())));
    const bool is_filling = word == kNop || word == 0;  // udf
    if (!(has_returned ? is_filling : word == kRet))
      return false;
    has_returned = true;
  }
  return has_returned;
}

std::optional<uint64_t> JumpTarget(std::span<const uint8_t> bytes, uint64_t address) {
  const std::optional<uint32_t> first = WordAt(bytes);
  if (!first || (*first & 0xfc000000) != kBranch)
    return std::nullopt;
  return address + static_cast<uint64_t>(SignedBits(*first, 0, 26) * 4);
}

// ldr x17, 8 bytes on; br x17.
std::vector<uint8_t> MakeFarJump(uint64_t target) {
  Writer writer(0);
  writer.Add(0x58000040 | kScratch);
  writer.Add(0xd61f0000 | kScratch << 5);
  writer.Add(static_cast<uint32_t>(target));
  writer.Add(static_cast<uint32_t>(target >> 32));
  return writer.Bytes();
}

std::vector<uint8_t> MakeJump(uint64_t address, uint64_t target, size_t length) {
  Writer writer(address);
  if (length != kJumpLength || !writer.AddBranch(kBranch, target))
    return {};
  return writer.Bytes();
}

Result<MovedPrologue> MovePrologue(std::span<const uint8_t> bytes,
                                   uint64_t address,
                                   const KeptBegin& kept,
                                   uint64_t new_address) {
  const std::optional<uint32_t> begin = WordAt(bytes);
  const std::optional<uint32_t> replaced =
      WordAt(bytes.subspan(std::min(kept.length, bytes.size())));
  if (!begin || !replaced || *replaced >> 16 == 0)
    return Immovable("its first instructions cannot be decoded");
  if (BranchesTo(bytes, address, address + kept.length))
    return Immovable("a branch leads into its first instructions");
  Writer writer(new_address);
  if (kept.is_repeated)
    HPD_TRY(MoveInstruction(*begin, address, &writer));
  MovedPrologue moved{.length = kJumpLength,
                      .code = {},
                      .copied_at = static_cast<size_t>(writer.here() - new_address)};
  HPD_TRY(MoveInstruction(*replaced, address + kept.length, &writer));
  if (!writer.AddBranch(kBranch, address + kept.length + kJumpLength))
    return Immovable("it is too far away");
  moved.code = writer.Bytes();
  return moved;
}

std::vector<std::pair<size_t, size_t>> MovedInstructions(
    std::span<const uint8_t> original, uint64_t /*address*/, uint64_t /*new_address*/) {
  std::vector<std::pair<size_t, size_t>> places;
  if (original.size() >= kJumpLength)
    places.emplace_back(0, 0);
  return places;
}

}  // namespace heapprofd
