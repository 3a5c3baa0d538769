#include "attach/patch_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "attach/client_image.h"
#include "attach/prologue.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFunction = 4096;  // bytes that are searched for branches back
constexpr size_t kUnknownFunction = 64;
constexpr uint64_t kGateAlignment = 16;
constexpr size_t kMaxGate = 64;  // bytes

// Functions whose hooks need a second one of the same allocator: a throwing operator new
// is served by its twin that does not throw, and xallocx asks for the size before.
std::optional<Hook> TwinOf(Hook hook) {
  switch (hook) {
    case Hook::kNew:
      return Hook::kNewNothrow;
    case Hook::kNewArray:
      return Hook::kNewArrayNothrow;
    case Hook::kNewAligned:
      return Hook::kNewAlignedNothrow;
    case Hook::kNewArrayAligned:
      return Hook::kNewArrayAlignedNothrow;
    case Hook::kXallocx:
      return Hook::kSallocx;
    default:
      return std::nullopt;
  }
}

// Whether what a function frees, or moves, is missed when it has no hook: then memory
// that is long gone would be shown as live.
bool IsFreeing(Hook hook) {
  switch (hook) {
    case Hook::kRealloc:
    case Hook::kReallocarray:
    case Hook::kRallocx:
    case Hook::kFree:
    case Hook::kFreeSized:
    case Hook::kFreeAlignedSized:
    case Hook::kDallocx:
    case Hook::kSdallocx:
      return true;
    default:
      return hook >= Hook::kDelete && hook <= Hook::kDeleteArrayAlignedNothrow;
  }
}

class Planner {
 public:
  Planner(const RemoteProcess& process,
          const std::vector<MapEntry>& maps,
          uint64_t base,
          const AttachState& state)
      : process_(process), maps_(maps), base_(base) {
    plan_.state = state;
    plan_.state.patch_count =
        std::min<uint32_t>(state.patch_count, static_cast<uint32_t>(kMaxPatches));
  }

  void AddAllocator(const Allocator& allocator) {
    bool is_known = false;
    const size_t number = NumberOf(allocator, &is_known);
    if (number >= kMaxAllocators) {
      plan_.unpatched.push_back("all of " + allocator.path +
                                ": the process has more than four allocators");
      return;
    }
    const PatchPlan before = plan_;
    is_given_[number] = true;
    if (!is_known)
      memset(plan_.state.originals[number], 0, sizeof(plan_.state.originals[number]));
    const std::string missed = AddFunctions(allocator, number);
    if (!missed.empty()) {
      plan_ = before;
      is_given_[number] = false;
      plan_.unpatched.push_back("all of " + allocator.path +
                                ", as what it frees would be missed: " + missed);
    } else if (plan_.patches.size() > before.patches.size()) {
      plan_.allocators.push_back(allocator.path);
    }
  }

  PatchPlan Take() { return std::move(plan_); }

 private:
  // Twins first: a throwing operator is left alone when its twin cannot be had. Not
  // empty: a function that frees, and why it cannot be hooked.
  std::string AddFunctions(const Allocator& allocator, size_t number) {
    for (const bool wants_twins : {false, true}) {
      for (const AllocatorFunction& function : allocator.functions) {
        if (TwinOf(function.hook).has_value() != wants_twins)
          continue;
        const Status status = AddFunction(function, number);
        if (status.ok())
          continue;
        if (IsFreeing(function.hook))
          return NameOf(function.hook) + ": " + status.message();
        plan_.unpatched.push_back(NameOf(function.hook) + " of " + allocator.path + ": " +
                                  status.message());
      }
    }
    return "";
  }

  // The number that an allocator had in earlier sessions, whatever has been loaded before
  // it since: a thread may still be in a hook of one, and will go on in the allocator
  // that has its number then. kMaxAllocators: none is left.
  size_t NumberOf(const Allocator& allocator, bool* is_known) const {
    std::array<bool, kMaxAllocators> is_taken = is_given_;
    for (size_t i = 0; i < plan_.state.patch_count; ++i) {
      const PatchRecord& record = plan_.state.patches[i];
      const size_t number =
          record.hook != 0 ? (record.hook - 1) / kHookCount : kMaxAllocators;
      if (number >= kMaxAllocators)
        continue;
      *is_known = !is_given_[number] && HasFunctionAt(allocator, record.address);
      if (*is_known)
        return number;
      is_taken[number] |= IsCode(record.address);
    }
    return static_cast<size_t>(std::find(is_taken.begin(), is_taken.end(), false) -
                               is_taken.begin());
  }

  // Records are for what follows a prefix.
  static bool HasFunctionAt(const Allocator& allocator, uint64_t address) {
    constexpr uint64_t kLongestPrefix = 16;
    return std::any_of(allocator.functions.begin(), allocator.functions.end(),
                       [address](const AllocatorFunction& function) {
                         return address - function.address < kLongestPrefix;
                       });
  }

  bool IsCode(uint64_t address) const {
    return std::any_of(maps_.begin(), maps_.end(), [address](const MapEntry& entry) {
      return entry.executable && address >= entry.start && address < entry.end;
    });
  }

  static std::string NameOf(Hook hook) {
    constexpr std::array<const char*, kHookCount> kNames = {
#define HPD_SYMBOL(name, symbol) symbol,
        HPD_HOOK_LIST(HPD_SYMBOL)
#undef HPD_SYMBOL
    };
    return kNames[static_cast<size_t>(hook)];
  }

  Status AddFunction(const AllocatorFunction& function, size_t number) {
    const std::optional<Hook> twin = TwinOf(function.hook);
    if (twin && OriginalOf(number, *twin) == 0)
      return Status(StatusCode::kUnavailable, NameOf(*twin) + " is missing");
    if (function.hook == Hook::kSallocx) {
      OriginalOf(number, function.hook) = function.address;
      return {};
    }
    std::vector<uint8_t> bytes(function.size != 0
                                   ? std::min<size_t>(function.size, kMaxFunction)
                                   : kUnknownFunction);
    if (!process_.Read(function.address, bytes.data(), bytes.size()))
      return Status(StatusCode::kUnavailable, "its code cannot be read");
    const size_t skipped = SkippedPrefix(bytes);
    const uint64_t address = function.address + skipped;
    const std::span<const uint8_t> code = std::span(bytes).subspan(skipped);
    if (IsForeignJump(code, address))
      return Status(StatusCode::kUnavailable, "another tool has hooked it");
    const PrefixEffect effect = EffectOfPrefix(std::span(bytes).first(skipped));
    HPD_TRY_ASSIGN(const size_t record, RecordFor(address, code, effect.redo));
    HPD_TRY(SetJump(&plan_.state.patches[record], number, function.hook, effect.undo));
    OriginalOf(number, function.hook) = plan_.state.patches[record].gate;
    plan_.patches.push_back(record);
    return {};
  }

  static size_t Index(Hook hook) {
    return static_cast<size_t>(hook);
  }

  uint64_t& OriginalOf(size_t number, Hook hook) {
    return plan_.state.originals[number][Index(hook)];
  }

  // A jump at the entry that leads out of the module.
  bool IsForeignJump(std::span<const uint8_t> code, uint64_t address) const {
    const std::optional<uint64_t> target = JumpTarget(code, address);
    return target && std::none_of(maps_.begin(), maps_.end(), [&](const MapEntry& entry) {
             return address >= entry.start && address < entry.end &&
                    *target >= entry.start && *target < entry.end;
           });
  }

  // The record of an earlier session for the same code, or a new one with a new gate,
  // which begins with `redo`.
  Result<size_t> RecordFor(uint64_t address,
                           std::span<const uint8_t> code,
                           std::span<const uint8_t> redo) {
    AttachState& state = plan_.state;
    for (size_t i = 0; i < state.patch_count; ++i) {
      const PatchRecord& record = state.patches[i];
      if (record.address == address && record.length <= code.size() &&
          record.length <= kMaxPatchLength &&
          memcmp(record.original, code.data(), record.length) == 0)
        return i;
    }
    if (state.patch_count >= kMaxPatches)
      return Status(StatusCode::kUnavailable,
                    "the process has been attached to too often with changing modules");
    HPD_TRY_ASSIGN(uint64_t* const used, RoomFor(address, kMaxGate));
    const uint64_t gate = GateAddress(used);
    HPD_TRY_ASSIGN(MovedPrologue moved, MovePrologue(code, address, gate + redo.size()));
    moved.code.insert(moved.code.begin(), redo.begin(), redo.end());
    PatchRecord& record = state.patches[state.patch_count];
    record = PatchRecord{};
    record.address = address;
    record.gate = gate;
    record.length = static_cast<uint32_t>(moved.length);
    memcpy(record.original, code.data(), moved.length);
    *used += AlignedGate(moved.code.size());
    plan_.gates.push_back({.address = gate, .code = std::move(moved.code)});
    return state.patch_count++;
  }

  static uint64_t AlignedGate(size_t size) {
    return (size + kGateAlignment - 1) / kGateAlignment * kGateAlignment;
  }

  uint64_t GateAddress(const uint64_t* used) const {
    const AttachState& state = plan_.state;
    if (used == &state.gates_used)
      return base_ + ClientHeader().gates + *used;
    return state.islands[used - state.islands_used] + *used;
  }

  // Where code near `address` can be placed: counter of the used bytes there.
  Result<uint64_t*> RoomFor(uint64_t address, size_t size) {
    AttachState& state = plan_.state;
    const AttachHeader& header = ClientHeader();
    if (IsInReach(address, base_, header.code_size) &&
        state.gates_used + size <= header.code_size - header.gates)
      return &state.gates_used;
    for (size_t i = 0; i < kMaxIslands; ++i) {
      if (state.islands[i] == 0) {
        const std::optional<uint64_t> gap = FindGap(maps_, address, kIslandSize);
        if (!gap)
          return Status(StatusCode::kUnavailable, "there is no free memory near it");
        state.islands[i] = *gap;
        state.islands_used[i] = 0;
        plan_.new_islands.push_back(*gap);
      }
      if (IsInReach(address, state.islands[i], kIslandSize) &&
          state.islands_used[i] + size <= kIslandSize)
        return &state.islands_used[i];
    }
    return Status(StatusCode::kUnavailable, "there is no room left near it");
  }

  // The jump to the hook, by way of an entry of ours when the hook is out of reach, or
  // when what a prefix has done must be undone before.
  Status SetJump(PatchRecord* record,
                 size_t number,
                 Hook name,
                 std::span<const uint8_t> undo) {
    const auto hook_number = static_cast<uint32_t>(1 + number * kHookCount + Index(name));
    if (record->hook == hook_number)
      return {};  // as in an earlier session
    const uint64_t hook = base_ + ClientHeader().hooks[number][Index(name)];
    std::vector<uint8_t> jump;
    if (undo.empty())
      jump = MakeJump(record->address, hook, record->length);
    if (jump.empty()) {
      std::vector<uint8_t> code(undo.begin(), undo.end());
      const std::vector<uint8_t> onward = MakeFarJump(hook);
      code.insert(code.end(), onward.begin(), onward.end());
      HPD_TRY_ASSIGN(uint64_t* const used,
                     RoomFor(record->address, AlignedGate(code.size())));
      const uint64_t entry = GateAddress(used);
      *used += AlignedGate(code.size());
      plan_.gates.push_back({.address = entry, .code = std::move(code)});
      jump = MakeJump(record->address, entry, record->length);
    }
    if (jump.size() != record->length)
      return Status(StatusCode::kUnavailable, "it is too far away");
    memcpy(record->written, jump.data(), jump.size());
    record->hook = hook_number;  // not before: the next session believes it
    return {};
  }

  const RemoteProcess& process_;
  const std::vector<MapEntry>& maps_;
  uint64_t base_;
  std::array<bool, kMaxAllocators> is_given_{};  // the number, in this session
  PatchPlan plan_;
};

}  // namespace

Result<PatchPlan> MakePatchPlan(const RemoteProcess& process,
                                const std::vector<MapEntry>& maps,
                                const ProcessCode& code,
                                uint64_t base,
                                const AttachState& state) {
  Planner planner(process, maps, base, state);
  for (const Allocator& allocator : code.allocators)
    planner.AddAllocator(allocator);
  PatchPlan plan = planner.Take();
  if (plan.patches.empty())
    return Status(
        StatusCode::kUnavailable,
        "none of its allocator's functions can be hooked: " +
            (plan.unpatched.empty() ? NoAllocatorReason(code) : plan.unpatched.front()));
  return plan;
}

std::vector<std::string> FindUnhookable(const RemoteProcess& process,
                                        const std::vector<MapEntry>& maps,
                                        const ProcessCode& code) {
  if (code.allocators.empty())
    return {};
  const uint64_t near = code.allocators.front().functions.front().address;
  const std::optional<uint64_t> base = FindGap(maps, near, ClientHeader().total_size);
  if (!base)
    return {"all: there is no free memory near its allocator"};
  Planner planner(process, maps, *base, AttachState{});
  for (const Allocator& allocator : code.allocators)
    planner.AddAllocator(allocator);
  return planner.Take().unpatched;
}

}  // namespace heapprofd
