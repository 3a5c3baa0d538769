#include "attach/patch_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "attach/client_image.h"
#include "attach/entry/file_code.h"
#include "attach/entry/followed_functions.h"
#include "attach/entry/hook_contract.h"
#include "attach/prologue.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFunction = 4096;  // bytes that are searched for branches back
constexpr uint64_t kGateAlignment = 16;
constexpr size_t kMaxGate = 64;  // bytes
constexpr size_t kMaxBegin = kMaxKeptLength + kMaxPatchLength;

Status CannotHook(const char* why) {
  return Status(StatusCode::kUnavailable, why);
}

// A function's code: in the file, as far as it matters, and its begin in memory.
struct FunctionCode {
  uint64_t address = 0;
  std::vector<uint8_t> file;
  std::vector<uint8_t> memory;
};

class Planner {
 public:
  Planner(const RemoteProcess& process,
          const std::vector<MapEntry>& maps,
          const std::vector<Allocator>& allocators,
          uint64_t base,
          const AttachState& state)
      : process_(process),
        maps_(maps),
        file_(process.view(), maps),
        follower_(process, &file_, allocators),
        base_(base) {
    plan_.state = state;
    plan_.state.patch_count =
        std::min<uint32_t>(state.patch_count, static_cast<uint32_t>(kMaxPatches));
  }

  void AddAllocator(const Allocator& allocator) {
    functions_ = follower_.Follow(allocator);
    FindPlaces();
    bool is_known = false;
    const size_t number = NumberOf(&is_known);
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
  // Those first that others need: a throwing operator is left alone when its twin cannot
  // be had, and a function that only jumps to another one is served by that one's hook.
  // Not empty: a function that frees, and why it cannot be hooked.
  std::string AddFunctions(const Allocator& allocator, size_t number) {
    for (const auto& [wants_twins, are_aliases] :
         {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
      for (const FollowedFunction& followed : functions_) {
        const Hook hook = followed.function.hook;
        if (TwinOf(hook).has_value() != wants_twins || followed.is_alias != are_aliases)
          continue;
        const Status status =
            are_aliases ? AddAlias(followed, number) : AddFunction(followed, number);
        if (status.ok())
          continue;
        if (IsFreeing(hook) && !IsServedByRealloc(followed))
          return NameOf(hook) + ": " + status.message();
        plan_.unpatched.push_back(NameOf(hook) + " of " + allocator.path + ": " +
                                  status.message());
      }
    }
    return "";
  }

  // A reallocarray that calls realloc, whose hook sees that.
  bool IsServedByRealloc(const FollowedFunction& followed) {
    if (followed.function.hook != Hook::kReallocarray)
      return false;
    const std::vector<uint8_t> code = file_.Read(followed.code, kMaxFunction);
    const size_t size = std::min<size_t>(code.size(), followed.function.size);
    return std::ranges::any_of(functions_, [&](const FollowedFunction& other) {
      return other.function.hook == Hook::kRealloc &&
             BranchesTo(std::span(code).first(size), followed.code,
                        other.function.address);
    });
  }

  void FindPlaces() {
    std::vector<uint64_t> addresses;
    for (const FollowedFunction& followed : functions_) {
      addresses.push_back(followed.code);
      addresses.push_back(followed.function.address);
    }
    places_ = file_.PlacesInside(addresses, kMaxBegin);
  }

  // The number that an allocator had in earlier sessions, whatever has been loaded before
  // it since: a thread may still be in a hook of one, and will go on in the allocator
  // that has its number then. kMaxAllocators: none is left.
  size_t NumberOf(bool* is_known) const {
    std::array<bool, kMaxAllocators> is_taken = is_given_;
    for (size_t i = 0; i < plan_.state.patch_count; ++i) {
      const PatchRecord& record = plan_.state.patches[i];
      const size_t number =
          record.hook != 0 ? (record.hook - 1) / kHookCount : kMaxAllocators;
      if (number >= kMaxAllocators)
        continue;
      *is_known = !is_given_[number] && HasFunctionAt(record.address);
      if (*is_known)
        return number;
      is_taken[number] |= IsCode(record.address);
    }
    return static_cast<size_t>(std::find(is_taken.begin(), is_taken.end(), false) -
                               is_taken.begin());
  }

  // Records are for what follows the bytes that stay.
  bool HasFunctionAt(uint64_t address) const {
    return std::ranges::any_of(functions_, [address](const FollowedFunction& followed) {
      return address - followed.code < kMaxKeptLength ||
             address - followed.function.address < kMaxKeptLength;
    });
  }

  bool IsCode(uint64_t address) const {
    return std::any_of(maps_.begin(), maps_.end(), [address](const MapEntry& entry) {
      return entry.executable && address >= entry.start && address < entry.end;
    });
  }

  // The hook of the function that it jumps to sees its calls. Its own is a way to that.
  Status AddAlias(const FollowedFunction& alias, size_t number) {
    for (const FollowedFunction& followed : functions_) {
      if (followed.is_alias || followed.code != alias.code)
        continue;
      const uint64_t original = OriginalOf(number, followed.function.hook);
      if (original == 0)
        return CannotHook("it is a jump to a function that has no hook");
      OriginalOf(number, alias.function.hook) = original;
      break;
    }
    return {};  // otherwise of another allocator
  }

  Status AddFunction(const FollowedFunction& followed, size_t number) {
    const AllocatorFunction& function = followed.function;
    const std::optional<Hook> twin = TwinOf(function.hook);
    if (twin && OriginalOf(number, *twin) == 0)
      return Status(StatusCode::kUnavailable, NameOf(*twin) + " is missing");
    if (function.hook == Hook::kSallocx) {
      OriginalOf(number, function.hook) = function.address;
      return {};
    }
    if (followed.code == function.address)
      return AddCode(function.hook, function.address, function.size, number);
    if (AddCode(function.hook, followed.code, /*size=*/0, number).ok())
      return {};
    return AddCode(function.hook, function.address, function.size, number);
  }

  // Hooks the code at `address`; `size`: bytes, 0: unknown.
  Status AddCode(Hook hook, uint64_t address, uint64_t size, size_t number) {
    HPD_TRY_ASSIGN(const FunctionCode code, ReadCode(address, size));
    HPD_TRY_ASSIGN(const KeptBegin kept, KeepBegin(code.file, ContractOf(hook)));
    HPD_TRY_ASSIGN(const size_t record, RecordFor(code, kept));
    HPD_TRY(SetJump(&plan_.state.patches[record], number, hook, kept.undo));
    OriginalOf(number, hook) = plan_.state.patches[record].gate;
    plan_.patches.push_back(record);
    return {};
  }

  Result<FunctionCode> ReadCode(uint64_t address, uint64_t size) {
    const size_t wanted = size != 0 ? std::min<size_t>(size, kMaxFunction) : kMaxFunction;
    FunctionCode code{
        .address = address, .file = file_.Read(address, wanted), .memory = {}};
    code.memory.resize(std::min(wanted, kMaxBegin));
    if (!process_.Read(address, code.memory.data(), code.memory.size()))
      return CannotHook("its code cannot be read");
    return code.file.empty() ? CannotHook("its code is in no file that can be opened")
                             : Result<FunctionCode>(std::move(code));
  }

  // Whether the first `length` bytes of a function can become ours: they are as in the
  // file, but for a probe that the kernel has put on the begin, and nothing else begins
  // there.
  Status CheckBegin(const FunctionCode& code, size_t length) const {
    const size_t probe =
        ProbeLength(code.memory, code.file, code.address,
                    [this](uint64_t address) { return IsProbesCode(address); });
    if (length > code.memory.size() || length > code.file.size())
      return CannotHook("it is too short");
    for (size_t i = probe; i < length; ++i) {
      if (code.memory[i] == code.file[i])
        continue;
      if (IsForeignJump(code.memory, code.address))
        return CannotHook("another tool has hooked it");
      return BreakpointLength(std::span(code.memory).subspan(i)) != 0
                 ? CannotHook(
                       "a kernel probe, or a debugger's breakpoint, is in its "
                       "first instructions")
                 : CannotHook("its code is not that of its file");
    }
    if (std::ranges::any_of(places_, [&](uint64_t place) {
          return place > code.address && place < code.address + length;
        }))
      return CannotHook("a symbol or a static probe lies in its first instructions");
    return {};
  }

  bool IsProbesCode(uint64_t address) const {
    return std::ranges::any_of(maps_, [address](const MapEntry& entry) {
      return entry.path == "[uprobes-trampoline]" && address >= entry.start &&
             address < entry.end;
    });
  }

  static size_t Index(Hook hook) { return static_cast<size_t>(hook); }

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

  static bool IsOf(const PatchRecord& record,
                   const FunctionCode& code,
                   const KeptBegin& kept) {
    const std::span<const uint8_t> file = code.file;
    return record.address == code.address + kept.length && record.kept == kept.length &&
           (record.copied_at == 0) != kept.is_repeated &&
           record.length <= kMaxPatchLength && kept.length <= kMaxKeptLength &&
           kept.length + record.length <= file.size() &&
           memcmp(record.begin, file.data(), kept.length) == 0 &&
           memcmp(record.original, file.data() + kept.length, record.length) == 0;
  }

  // The record of an earlier session for the same code, or a new one with a new gate.
  Result<size_t> RecordFor(const FunctionCode& code, const KeptBegin& kept) {
    AttachState& state = plan_.state;
    for (size_t i = 0; i < state.patch_count; ++i) {
      const PatchRecord& record = state.patches[i];
      if (!IsOf(record, code, kept))
        continue;
      HPD_TRY(CheckBegin(code, kept.length + record.length));
      return i;
    }
    if (state.patch_count >= kMaxPatches)
      return Status(StatusCode::kUnavailable,
                    "the process has been attached to too often with changing modules");
    HPD_TRY_ASSIGN(uint64_t* const used, RoomFor(code.address, kMaxGate));
    const uint64_t gate = GateAddress(used);
    HPD_TRY_ASSIGN(MovedPrologue moved,
                   MovePrologue(code.file, code.address, kept, gate));
    HPD_TRY(CheckBegin(code, kept.length + moved.length));
    PatchRecord& record = state.patches[state.patch_count];
    record = PatchRecord{};
    record.address = code.address + kept.length;
    record.gate = gate;
    record.length = static_cast<uint8_t>(moved.length);
    record.kept = static_cast<uint8_t>(kept.length);
    record.copied_at = static_cast<uint8_t>(moved.copied_at);
    memcpy(record.begin, code.file.data(), kept.length);
    memcpy(record.original, code.file.data() + kept.length, moved.length);
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

  // Undoes what the first instruction has done, and goes on to the hook.
  static std::vector<uint8_t> MakeStub(uint64_t address,
                                       uint64_t hook,
                                       std::span<const uint8_t> undo) {
    std::vector<uint8_t> code(undo.begin(), undo.end());
    std::vector<uint8_t> onward = MakeJump(address + code.size(), hook, kJumpLength);
    if (onward.empty())
      onward = MakeFarJump(hook);
    code.insert(code.end(), onward.begin(), onward.end());
    return code;
  }

  // The jump to the hook, by way of a stub of ours when the hook is out of reach, or when
  // what the first instruction has done must be undone before.
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
      HPD_TRY_ASSIGN(uint64_t* const used, RoomFor(record->address, kMaxGate));
      const uint64_t stub = GateAddress(used);
      std::vector<uint8_t> code = MakeStub(stub, hook, undo);
      *used += AlignedGate(code.size());
      plan_.gates.push_back({.address = stub, .code = std::move(code)});
      jump = MakeJump(record->address, stub, record->length);
    }
    if (jump.size() != record->length)
      return Status(StatusCode::kUnavailable, "it is too far away");
    memcpy(record->written, jump.data(), jump.size());
    record->hook = hook_number;  // not before: the next session believes it
    return {};
  }

  const RemoteProcess& process_;
  const std::vector<MapEntry>& maps_;
  FileCode file_;
  JumpFollower follower_;
  uint64_t base_;
  std::vector<FollowedFunction> functions_;  // of the allocator that is planned
  std::vector<uint64_t> places_;             // where others begin in their first bytes
  std::array<bool, kMaxAllocators> is_given_{};  // the number, in this session
  PatchPlan plan_;
};

}  // namespace

Result<PatchPlan> MakePatchPlan(const RemoteProcess& process,
                                const std::vector<MapEntry>& maps,
                                const ProcessCode& code,
                                uint64_t base,
                                const AttachState& state) {
  Planner planner(process, maps, code.allocators, base, state);
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
  Planner planner(process, maps, code.allocators, *base, AttachState{});
  for (const Allocator& allocator : code.allocators)
    planner.AddAllocator(allocator);
  return planner.Take().unpatched;
}

}  // namespace heapprofd
