// aarch64: instructions that reckon with their own address are written anew for another
// place; all others are copied. x16 and x17 may change there, as they may in every call
// (the linker's veneers use them).
#include "attach/prologue.h"

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

}  // namespace

// Where indirect branches may arrive: bti c, j, jc, and paciasp and pacibsp, which sign.
size_t SkippedPrefix(std::span<const uint8_t> bytes) {
  const std::optional<uint32_t> first = WordAt(bytes);
  const bool is_marker = first && (*first & ~0xc0u) == 0xd503241f && *first != 0xd503241f;
  return is_marker || first == kPaciasp || first == kPacibsp ? 4 : 0;
}

// A hook's return address is not signed: it is the same sp, so the signature can be taken
// off and put on again.
PrefixEffect EffectOfPrefix(std::span<const uint8_t> prefix) {
  const std::optional<uint32_t> first = WordAt(prefix);
  if (first != kPaciasp && first != kPacibsp)
    return {};
  const auto bytes_of = [](uint32_t word) {
    Writer writer(0);
    writer.Add(word);
    return writer.Bytes();
  };
  return {.undo = bytes_of(first == kPaciasp ? kAutiasp : kAutibsp),
          .redo = bytes_of(*first)};
}

bool DoesNothing(std::span<const uint8_t> bytes, size_t length) {
  constexpr uint32_t kRet = 0xd65f03c0;
  constexpr uint32_t kNop = 0xd503201f;
  bool has_returned = false;
  for (size_t at = SkippedPrefix(bytes); at < length; at += sizeof(uint32_t)) {
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
                                   uint64_t new_address) {
  const std::optional<uint32_t> first = WordAt(bytes);
  if (!first || *first >> 16 == 0)  // udf: never code
    return Immovable("its first instructions cannot be decoded");
  if ((*first & 0xffe0001f) == 0xd4200000)  // brk
    return Immovable("a debugger's breakpoint is on it");
  Writer writer(new_address);
  HPD_TRY(MoveInstruction(*first, address, &writer));
  if (!writer.AddBranch(kBranch, address + kJumpLength))
    return Immovable("it is too far away");
  return MovedPrologue{.length = kJumpLength, .code = writer.Bytes()};
}

std::vector<std::pair<size_t, size_t>> MovedInstructions(
    std::span<const uint8_t> original, uint64_t /*address*/, uint64_t /*new_address*/) {
  std::vector<std::pair<size_t, size_t>> places;
  if (original.size() >= kJumpLength)
    places.emplace_back(0, 0);
  return places;
}

}  // namespace heapprofd
