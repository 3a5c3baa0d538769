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

// The one that begins `bytes`; false: none does.
ZydisDecoder Decoder() {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return decoder;
}

// The instruction that begins `bytes`; false: none does.
bool Decode(std::span<const uint8_t> bytes, uint64_t address, Instruction* instruction) {
  const ZydisDecoder decoder = Decoder();
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(),
                                                  bytes.size(), &instruction->decoded)))
    return false;
  instruction->bytes = bytes.first(instruction->decoded.length);
  instruction->address = address;
  return true;
}

using Operands = std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT>;

// Of the instruction that begins `bytes`, hidden ones included.
bool DecodeOperands(std::span<const uint8_t> bytes, Operands* operands) {
  const ZydisDecoder decoder = Decoder();
  ZydisDecodedInstruction decoded;
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(),
                                             &decoded, operands->data()));
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

// Whether a branch in the function leads to [begin, end).
bool IsBranchedInto(std::span<const uint8_t> bytes,
                    uint64_t address,
                    uint64_t begin,
                    uint64_t end) {
  for (size_t at = 0; at < bytes.size();) {
    Instruction instruction;
    if (!Decode(bytes.subspan(at), address + at, &instruction)) {
      ++at;
      continue;
    }
    if (instruction.is_branch() && instruction.target() >= begin &&
        instruction.target() < end)
      return true;
    at += instruction.decoded.length;
  }
  return false;
}

constexpr std::array<uint8_t, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
constexpr std::array<uint8_t, 5> kPatchableNop = {0x0f, 0x1f, 0x44, 0x00, 0x00};
constexpr std::array<uint8_t, 2> kJumpByMemory = {0xff, 0x25};  // jmp *displacement(%rip)
constexpr uint8_t kBoundPrefix = 0xf2;

template <size_t size>
bool BeginsWith(std::span<const uint8_t> bytes, const std::array<uint8_t, size>& with) {
  return bytes.size() >= size && memcmp(bytes.data(), with.data(), size) == 0;
}

// Bytes of a marker for indirect branches.
size_t MarkerLength(std::span<const uint8_t> bytes) {
  return BeginsWith(bytes, kEndbr64) ? kEndbr64.size() : 0;
}

// By how much an instruction that does nothing else moves the stack pointer down, in
// bytes; 0: another one.
int64_t PushedBytes(const Instruction& instruction, const Operands& operands) {
  const ZydisDecodedOperand& first = operands[0];
  const ZydisDecodedOperand& second = operands[1];
  if (instruction.decoded.mnemonic == ZYDIS_MNEMONIC_PUSH)
    return instruction.decoded.operand_width == 64 &&
                   first.type != ZYDIS_OPERAND_TYPE_MEMORY
               ? 8
               : 0;
  const bool is_room = instruction.decoded.mnemonic == ZYDIS_MNEMONIC_SUB &&
                       first.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                       first.reg.value == ZYDIS_REGISTER_RSP &&
                       second.type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  return is_room && second.imm.value.s > 0 ? second.imm.value.s : 0;
}

// lea n(%rsp),%rsp: neither flags nor memory change.
std::vector<uint8_t> PopBytes(int64_t count) {
  if (count <= INT8_MAX)
    return {0x48, 0x8d, 0x64, 0x24, static_cast<uint8_t>(count)};
  std::vector<uint8_t> code = {0x48, 0x8d, 0xa4, 0x24, 0, 0, 0, 0};
  const auto wide = static_cast<int32_t>(count);
  memcpy(&code[4], &wide, sizeof(wide));
  return code;
}

// Which register of arguments it is, from 0; nullopt: none.
std::optional<size_t> ArgumentOf(ZydisRegister reg) {
  constexpr std::array<ZydisRegister, 6> kArguments = {
      ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
      ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9};
  const auto* const found = std::ranges::find(kArguments, reg);
  return found != kArguments.end()
             ? std::optional(static_cast<size_t>(found - kArguments.begin()))
             : std::nullopt;
}

// What writing an operand means for a hook that comes next.
enum class Harm : uint8_t { kNone, kPassedOn, kAll };

Harm HarmOf(const ZydisDecodedOperand& operand, const HookContract& contract) {
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
    return Harm::kNone;
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER)
    return Harm::kAll;
  const ZydisRegisterClass kind = ZydisRegisterGetClass(operand.reg.value);
  if (kind == ZYDIS_REGCLASS_FLAGS || kind == ZYDIS_REGCLASS_XMM ||
      kind == ZYDIS_REGCLASS_YMM || kind == ZYDIS_REGCLASS_ZMM)
    return Harm::kNone;
  const ZydisRegister whole =
      ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value);
  if (whole == ZYDIS_REGISTER_RAX || whole == ZYDIS_REGISTER_R10 ||
      whole == ZYDIS_REGISTER_R11)
    return Harm::kNone;
  const std::optional<size_t> argument = ArgumentOf(whole);
  if (argument && *argument >= contract.arguments)
    return Harm::kNone;
  return argument && *argument > 0 && contract.frees ? Harm::kPassedOn : Harm::kAll;
}

// lea and mov change no flags.
bool OnlyMoves(const Instruction& instruction) {
  return instruction.decoded.mnemonic == ZYDIS_MNEMONIC_LEA ||
         instruction.decoded.mnemonic == ZYDIS_MNEMONIC_MOV;
}

Result<KeptBegin> KeepInstruction(const Instruction& instruction,
                                  const Operands& operands,
                                  const HookContract& contract) {
  KeptBegin kept{.length = instruction.decoded.length, .undo = {}, .is_repeated = true};
  if (const int64_t pushed = PushedBytes(instruction, operands); pushed != 0) {
    kept.undo = PopBytes(pushed);
    return kept;
  }
  if (instruction.decoded.mnemonic == ZYDIS_MNEMONIC_STD)
    return Immovable("its first instruction changes the direction of strings");
  for (size_t i = 0; i < instruction.decoded.operand_count; ++i) {
    const Harm harm = HarmOf(operands[i], contract);
    if (harm == Harm::kAll || (harm == Harm::kPassedOn && !OnlyMoves(instruction)))
      return Immovable("its first instruction changes what a hook needs");
    kept.is_repeated = kept.is_repeated && harm == Harm::kNone;
  }
  return kept;
}

// Into the gate, as if they stood at their old place. `bytes` are theirs.
Status MoveAll(std::span<const uint8_t> bytes,
               uint64_t address,
               uint64_t new_address,
               std::vector<uint8_t>* code) {
  for (size_t at = 0; at < bytes.size();) {
    Instruction instruction;
    if (!Decode(bytes.subspan(at), address + at, &instruction))
      return Immovable("its first instructions cannot be decoded");
    HPD_TRY(MoveInstruction(instruction, new_address + code->size(), code));
    at += instruction.decoded.length;
  }
  return {};
}

// Bytes of whole instructions from `kept` on that have room for a jump.
Result<size_t> ReplacedLength(std::span<const uint8_t> bytes, size_t kept) {
  size_t length = 0;
  while (length < kJumpLength) {
    Instruction instruction;
    if (!Decode(bytes.subspan(std::min(kept + length, bytes.size())), length,
                &instruction))
      return Immovable("its first instructions cannot be decoded");
    length += instruction.decoded.length;
    if (length >= kJumpLength)
      break;
    if (EndsHere(instruction))
      return Immovable("it is too short");
    if (instruction.decoded.meta.category == ZYDIS_CATEGORY_CALL)
      return Immovable("a call would return into its first instructions");
  }
  if (length > kMaxPatchLength)
    return Immovable("its first instructions are too long");
  return length;
}

// A function that is a jump: only where it leads to is replaced.
Result<MovedPrologue> MoveJump(std::span<const uint8_t> bytes,
                               uint64_t address,
                               uint64_t new_address) {
  MovedPrologue moved{.length = kOperandLength, .code = {}, .copied_at = 0};
  HPD_TRY(MoveAll(bytes.first(kJumpLength), address, new_address, &moved.code));
  return moved;
}

}  // namespace

Result<KeptBegin> KeepBegin(std::span<const uint8_t> bytes,
                            const HookContract& contract) {
  if (const size_t marker = MarkerLength(bytes); marker != 0)
    return KeptBegin{.length = marker, .undo = {}, .is_repeated = true};
  if (JumpTarget(bytes, 0))
    return KeptBegin{
        .length = kJumpLength - kOperandLength, .undo = {}, .is_repeated = false};
  Instruction instruction;
  Operands operands;
  if (!Decode(bytes, 0, &instruction) || !DecodeOperands(bytes, &operands))
    return Immovable("its first instructions cannot be decoded");
  const ZydisInstructionCategory category = instruction.decoded.meta.category;
  if (instruction.is_branch() || category == ZYDIS_CATEGORY_CALL ||
      category == ZYDIS_CATEGORY_UNCOND_BR)
    return Immovable("its first instruction is a branch");
  if (EndsHere(instruction))
    return Immovable("it is too short");
  return KeepInstruction(instruction, operands, contract);
}

bool BranchesTo(std::span<const uint8_t> bytes, uint64_t address, uint64_t target) {
  return IsBranchedInto(bytes, address, target, target + 1);
}

size_t BreakpointLength(std::span<const uint8_t> bytes) {
  return !bytes.empty() && bytes[0] == kBreakpoint ? 1 : 0;
}

size_t ProbeLength(std::span<const uint8_t> memory,
                   std::span<const uint8_t> file,
                   uint64_t address,
                   const std::function<bool(uint64_t)>& is_probes_code) {
  if (BreakpointLength(memory) != 0)
    return BreakpointLength(file) == 0 ? 1 : 0;
  int32_t distance = 0;
  if (!BeginsWith(file, kPatchableNop) || memory.size() < kJumpLength ||
      memory[0] != kCallOpcode)
    return 0;
  memcpy(&distance, &memory[1], sizeof(distance));
  const uint64_t target =
      address + kJumpLength + static_cast<uint64_t>(int64_t{distance});
  return is_probes_code(target) ? kJumpLength : 0;
}

std::optional<OnwardJump> StubOnward(std::span<const uint8_t> bytes, uint64_t address) {
  size_t at = MarkerLength(bytes);
  at += at < bytes.size() && bytes[at] == kBoundPrefix ? 1u : 0u;
  int32_t distance = 0;
  if (!BeginsWith(bytes.subspan(at), kJumpByMemory) ||
      bytes.size() < at + kJumpByMemory.size() + sizeof(distance))
    return std::nullopt;
  at += kJumpByMemory.size();
  memcpy(&distance, &bytes[at], sizeof(distance));
  return OnwardJump{
      .target = 0,
      .slot = address + at + sizeof(distance) + static_cast<uint64_t>(int64_t{distance})};
}

std::optional<OnwardJump> JumpOnward(std::span<const uint8_t> bytes, uint64_t address) {
  if (const std::optional<uint64_t> target = JumpTarget(bytes, address))
    return OnwardJump{.target = *target, .slot = 0};
  if (bytes.size() >= 2 && bytes[0] == kShortJumpOpcode)
    return OnwardJump{
        .target =
            address + 2 + static_cast<uint64_t>(int64_t{static_cast<int8_t>(bytes[1])}),
        .slot = 0};
  return MarkerLength(bytes) == 0 ? StubOnward(bytes, address) : std::nullopt;
}

// push number; jmp, or bnd jmp
bool IsLazyStub(std::span<const uint8_t> bytes) {
  constexpr uint8_t kPush = 0x68;
  constexpr size_t kPushLength = 5;
  const std::span<const uint8_t> code = bytes.subspan(MarkerLength(bytes));
  return code.size() > kPushLength && code[0] == kPush &&
         (code[kPushLength] == kJumpOpcode || code[kPushLength] == kBoundPrefix);
}

bool DoesNothing(std::span<const uint8_t> bytes, size_t length) {
  bool has_returned = false;
  for (size_t at = MarkerLength(bytes); at < length;) {
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
  std::vector<uint8_t> code(kJumpByMemory.begin(), kJumpByMemory.end());
  code.resize(kJumpByMemory.size() + sizeof(int32_t) +
              sizeof(target));  // the pointer follows
  memcpy(&code[code.size() - sizeof(target)], &target, sizeof(target));
  return code;
}

std::vector<uint8_t> MakeJump(uint64_t address, uint64_t target, size_t length) {
  const bool is_operand = length == kOperandLength;
  int32_t distance = 0;
  if ((length < kJumpLength && !is_operand) ||
      !Distance(address, is_operand ? kOperandLength : kJumpLength, target, &distance))
    return {};
  std::vector<uint8_t> jump(length, kNop);
  jump[0] = kJumpOpcode;
  memcpy(&jump[is_operand ? 0 : 1], &distance, sizeof(distance));
  return jump;
}

Result<MovedPrologue> MovePrologue(std::span<const uint8_t> bytes,
                                   uint64_t address,
                                   const KeptBegin& kept,
                                   uint64_t new_address) {
  if (JumpTarget(bytes, address) && kept.length == kJumpLength - kOperandLength)
    return MoveJump(bytes, address, new_address);
  MovedPrologue moved;
  HPD_TRY_ASSIGN(moved.length, ReplacedLength(bytes, kept.length));
  const size_t end = kept.length + moved.length;
  // To the jump itself neither: it would run the hook in mid-function.
  if (IsBranchedInto(bytes, address, address + 1, address + end))
    return Immovable("a branch leads into its first instructions");
  if (kept.is_repeated)
    HPD_TRY(MoveAll(bytes.first(kept.length), address, new_address, &moved.code));
  moved.copied_at = moved.code.size();
  HPD_TRY(MoveAll(bytes.first(end).subspan(kept.length), address + kept.length,
                  new_address, &moved.code));
  const std::vector<uint8_t> back =
      MakeJump(new_address + moved.code.size(), address + end, kJumpLength);
  if (back.empty())
    return Immovable("it is too far away");
  Append(&moved.code, back);
  return moved;
}

std::vector<std::pair<size_t, size_t>> MovedInstructions(
    std::span<const uint8_t> original, uint64_t address, uint64_t new_address) {
  std::vector<std::pair<size_t, size_t>> places;
  std::vector<uint8_t> code;
  if (original.size() < kJumpLength)
    return places;  // a part of one instruction
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
