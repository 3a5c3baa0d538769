#include "attach/prologue.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "wire/attached_client.h"

namespace heapprofd {
namespace {

constexpr uint8_t kNop = 0x90;
constexpr uint8_t kJumpOpcode = 0xe9;
constexpr uint8_t kShortJumpOpcode = 0xeb;
constexpr uint8_t kCallOpcode = 0xe8;
constexpr uint8_t kBreakpoint = 0xcc;

struct Instruction {
  ZydisDecodedInstruction decoded;
  std::span<const uint8_t> bytes;
  uint64_t address;

  bool is_branch() const {
    return (decoded.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 &&
           decoded.raw.imm[0].is_relative != 0;
  }

  bool uses_rip() const {
    return (decoded.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 && !is_branch();
  }

  uint64_t target() const {
    const int64_t distance =
        is_branch() ? decoded.raw.imm[0].value.s : decoded.raw.disp.value;
    return address + decoded.length + static_cast<uint64_t>(distance);
  }
};

bool Decode(std::span<const uint8_t> bytes, uint64_t address, Instruction* instruction) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(),
                                                  bytes.size(), &instruction->decoded)))
    return false;
  instruction->bytes = bytes.first(instruction->decoded.length);
  instruction->address = address;
  return true;
}

Status Immovable(const char* why) {
  return Status(StatusCode::kUnavailable, why);
}

// Distance from the end of an instruction at `from` of `length` bytes; false: too far.
bool Distance(uint64_t from, size_t length, uint64_t to, int32_t* distance) {
  const auto wide = static_cast<int64_t>(to - (from + length));
  *distance = static_cast<int32_t>(wide);
  return wide > -kJumpReach && wide < kJumpReach;
}

void Append(std::vector<uint8_t>* code, std::span<const uint8_t> bytes) {
  code->insert(code->end(), bytes.begin(), bytes.end());
}

// A branch in its long form, to where it led.
Status MoveBranch(const Instruction& from, uint64_t to, std::vector<uint8_t>* code) {
  const uint8_t opcode = from.decoded.opcode;
  std::array<uint8_t, 2> long_opcode{};
  size_t size = 0;
  const bool is_conditional = from.decoded.meta.category == ZYDIS_CATEGORY_COND_BR;
  const bool is_short_map = from.decoded.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
  if (is_conditional && is_short_map && (opcode & 0xf0) == 0x70) {
    long_opcode = {0x0f, static_cast<uint8_t>(0x80 | (opcode & 15))};
    size = 2;
  } else if (is_conditional && from.decoded.opcode_map == ZYDIS_OPCODE_MAP_0F &&
             (opcode & 0xf0) == 0x80) {
    long_opcode = {0x0f, opcode};
    size = 2;
  } else if (is_short_map && (opcode == kShortJumpOpcode || opcode == kJumpOpcode)) {
    long_opcode = {kJumpOpcode};
    size = 1;
  } else if (is_short_map && opcode == kCallOpcode) {
    // It comes back to the copy, which stays as long as the process: a thread that is in
    // there now comes back behind what is replaced, as a call is the last of it.
    long_opcode = {kCallOpcode};
    size = 1;
  } else {
    return Immovable("its first instructions loop or branch in an unusual way");
  }
  int32_t distance = 0;
  if (!Distance(to, size + sizeof(distance), from.target(), &distance))
    return Immovable("its first branch leads too far");
  Append(code, std::span(long_opcode).first(size));
  std::array<uint8_t, sizeof(distance)> bytes{};
  memcpy(bytes.data(), &distance, sizeof(distance));
  Append(code, bytes);
  return {};
}

Status MoveInstruction(const Instruction& from, uint64_t to, std::vector<uint8_t>* code) {
  if (from.is_branch())
    return MoveBranch(from, to, code);
  const size_t start = code->size();
  Append(code, from.bytes);
  if (!from.uses_rip())
    return {};
  int32_t distance = 0;
  if (!Distance(to, from.bytes.size(), from.target(), &distance))
    return Immovable("it uses data that is too far away");
  memcpy(code->data() + start + from.decoded.raw.disp.offset, &distance,
         sizeof(distance));
  return {};
}

bool EndsHere(const Instruction& instruction) {
  return instruction.decoded.mnemonic == ZYDIS_MNEMONIC_RET ||
         instruction.decoded.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

// True when a branch in the function leads into what the jump covers.
bool IsBranchedInto(std::span<const uint8_t> bytes, uint64_t address, size_t length) {
  for (size_t at = 0; at < bytes.size();) {
    Instruction instruction;
    if (!Decode(bytes.subspan(at), address + at, &instruction)) {
      ++at;
      continue;
    }
    if (instruction.is_branch() && instruction.target() > address &&
        instruction.target() < address + length)
      return true;
    at += instruction.decoded.length;
  }
  return false;
}

// Someone else's breakpoint, or a jump out of the function's own surroundings.
bool IsPatchedAlready(std::span<const uint8_t> bytes) {
  return !bytes.empty() && bytes[0] == kBreakpoint;
}

}  // namespace

size_t SkippedPrefix(std::span<const uint8_t> bytes) {
  constexpr std::array<uint8_t, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
  const bool has_marker = bytes.size() >= kEndbr64.size() &&
                          memcmp(bytes.data(), kEndbr64.data(), kEndbr64.size()) == 0;
  return has_marker ? kEndbr64.size() : 0;
}

PrefixEffect EffectOfPrefix(std::span<const uint8_t> /*prefix*/) {
  return {};
}

bool DoesNothing(std::span<const uint8_t> bytes, size_t length) {
  bool has_returned = false;
  for (size_t at = SkippedPrefix(bytes); at < length;) {
    Instruction instruction;
    if (!Decode(bytes.subspan(std::min(at, bytes.size())), at, &instruction))
      return false;
    const ZydisMnemonic mnemonic = instruction.decoded.mnemonic;
    const bool is_filling =
        mnemonic == ZYDIS_MNEMONIC_NOP || mnemonic == ZYDIS_MNEMONIC_INT3;
    if (!(has_returned ? is_filling : mnemonic == ZYDIS_MNEMONIC_RET))
      return false;
    has_returned = true;
    at += instruction.decoded.length;
  }
  return has_returned;
}

std::optional<uint64_t> JumpTarget(std::span<const uint8_t> bytes, uint64_t address) {
  int32_t distance = 0;
  if (bytes.size() < kJumpLength || bytes[0] != kJumpOpcode)
    return std::nullopt;
  memcpy(&distance, &bytes[1], sizeof(distance));
  return address + kJumpLength + static_cast<uint64_t>(int64_t{distance});
}

std::vector<uint8_t> MakeFarJump(uint64_t target) {
  constexpr std::array<uint8_t, 6> kJumpByMemory = {0xff, 0x25};  // jmp *0(%rip)
  std::vector<uint8_t> code(kJumpByMemory.size() + sizeof(target));
  std::copy(kJumpByMemory.begin(), kJumpByMemory.end(), code.begin());
  memcpy(&code[kJumpByMemory.size()], &target, sizeof(target));
  return code;
}

std::vector<uint8_t> MakeJump(uint64_t address, uint64_t target, size_t length) {
  int32_t distance = 0;
  if (length < kJumpLength || !Distance(address, kJumpLength, target, &distance))
    return {};
  std::vector<uint8_t> jump(length, kNop);
  jump[0] = kJumpOpcode;
  memcpy(&jump[1], &distance, sizeof(distance));
  return jump;
}

Result<MovedPrologue> MovePrologue(std::span<const uint8_t> bytes,
                                   uint64_t address,
                                   uint64_t new_address) {
  if (IsPatchedAlready(bytes))
    return Immovable("a debugger's breakpoint is on it");
  MovedPrologue moved;
  while (moved.length < kJumpLength) {
    Instruction instruction;
    if (!Decode(bytes.subspan(std::min(moved.length, bytes.size())),
                address + moved.length, &instruction))
      return Immovable("its first instructions cannot be decoded");
    HPD_TRY(MoveInstruction(instruction, new_address + moved.code.size(), &moved.code));
    moved.length += instruction.decoded.length;
    if (EndsHere(instruction) && moved.length < kJumpLength)
      return Immovable("it is too short");
  }
  if (moved.length > kMaxPatchLength)
    return Immovable("its first instructions are too long");
  if (IsBranchedInto(bytes, address, moved.length))
    return Immovable("a branch leads into its first instructions");
  const std::vector<uint8_t> back =
      MakeJump(new_address + moved.code.size(), address + moved.length, kJumpLength);
  if (back.empty())
    return Immovable("it is too far away");
  Append(&moved.code, back);
  return moved;
}

std::vector<std::pair<size_t, size_t>> MovedInstructions(
    std::span<const uint8_t> original, uint64_t address, uint64_t new_address) {
  std::vector<std::pair<size_t, size_t>> places;
  std::vector<uint8_t> code;
  for (size_t at = 0; at < original.size();) {
    Instruction instruction;
    if (!Decode(original.subspan(at), address + at, &instruction))
      break;
    places.emplace_back(at, code.size());
    if (!MoveInstruction(instruction, new_address + code.size(), &code).ok())
      break;
    at += instruction.decoded.length;
  }
  return places;
}

}  // namespace heapprofd
