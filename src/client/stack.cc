// ThreadLayout and ForeignStack say where a stack may be read. WalkStack goes from the
// innermost frame outwards, by the rule of each; new frames fill the memo from its end
// (`inner`), those of the last walk stand at its start (`outer`). When the walk meets a
// frame of the last one, ProveCallers looks whether everything outside of it still is as
// it was; if so the walk is over (docs/design/walk-memo.md). Join brings both parts
// together and continues the hash. FindAnchor is for stacks that cannot be walked to
// their end: how far out the memo still holds.
#include "client/stack.h"

#include <elf.h>

#include <algorithm>

#include "rt/auxiliary_vector.h"
#include "rt/compiler.h"

// Set by the dynamic loader; absent under other libcs. All of them data, read once at
// start. The flat image has its own, which need no table of addresses.
#ifdef HPD_FLAT_CLIENT
#define HPD_IF_THERE __attribute__((visibility("hidden")))
#define HPD_IS_THERE(variable) true
#else
#define HPD_IF_THERE __attribute__((weak))
#define HPD_IS_THERE(variable) (&(variable) != nullptr)
#endif

extern "C" {
extern void* __libc_stack_end HPD_IF_THERE;

struct ThreadDbField {
  uint32_t bits;
  uint32_t count;
  uint32_t offset;
};

extern const ThreadDbField _thread_db_pthread_tid HPD_IF_THERE;
extern const uint32_t _thread_db_sizeof_pthread HPD_IF_THERE;  // bytes
}

namespace heapprofd {
namespace {

// The main stack grows down from main_stack_high_; the kernel keeps at least this much
// address space below it free of other mappings.
constexpr uint64_t kMainStackGap = uint64_t{128} << 20;
// The kernel maps this much of the main stack before the program starts.
constexpr uint64_t kInitialMainStack = uint64_t{96} << 10;
constexpr uint64_t kMaxStackSize = uint64_t{1} << 40;

uint64_t Load(uint64_t address) {
  return *reinterpret_cast<const volatile uint64_t*>(address);
}

// An address between the outermost frame of the first thread and the end of its stack;
// 0: unknown. Another libc than glibc does not tell: the kernel puts 16 random bytes behind
// the auxiliary vector.
uint64_t MainStackHigh() {
  if (!HPD_IS_THERE(__libc_stack_end))
    return rt::AuxiliaryValue(AT_RANDOM, 0) & ~uint64_t{7};
  // argc, argv, envp and the auxiliary vector follow.
  return reinterpret_cast<uint64_t>(__libc_stack_end) + 64;
}

}  // namespace

void ThreadLayout::Discover(uint64_t thread_pointer, int pid) {
  main_stack_high_ = MainStackHigh();
  if (main_stack_high_ == 0)
    return;
  main_thread_pointer_ = thread_pointer;
  if (!HPD_IS_THERE(__libc_stack_end) || !HPD_IS_THERE(_thread_db_pthread_tid) ||
      !HPD_IS_THERE(_thread_db_sizeof_pthread))
    return;
  const uint32_t block_size = _thread_db_sizeof_pthread;
  const uint32_t tid_offset = _thread_db_pthread_tid.offset;
  if (block_size > rt::kSmallestPage || tid_offset + sizeof(int) > block_size ||
      *reinterpret_cast<const volatile int*>(
          rt::ControlBlock(thread_pointer, block_size) + tid_offset) != pid)
    return;
  tid_offset_ = tid_offset;
  control_block_size_ = block_size;
  const uint64_t control = ControlBlock(thread_pointer);
  const auto stack_end = reinterpret_cast<uint64_t>(__libc_stack_end);
  // glibc gives the main thread a stack block from 0 of size __libc_stack_end: a value
  // that stands nowhere else in its control block, so it shows where the two fields are.
  for (uint64_t offset = 8; offset + 8 <= block_size; offset += 8) {
    if (Load(control + offset) == stack_end && Load(control + offset - 8) == 0) {
      stack_block_offset_ = offset - 8;
      return;
    }
  }
}

uint32_t ThreadLayout::ThreadId(uint64_t thread_pointer) const {
  if (tid_offset_ == 0)
    return 0;
  return *reinterpret_cast<const volatile uint32_t*>(ControlBlock(thread_pointer) +
                                                     tid_offset_);
}

StackBounds ThreadLayout::OwnStack(uint64_t thread_pointer, uint64_t sp) const {
  if (thread_pointer == main_thread_pointer_) {
    if (sp < main_stack_high_ && main_stack_high_ - sp < kMainStackGap)
      return {.low = sp & ~uint64_t{7}, .high = main_stack_high_};
    return {.is_known = false};
  }
  uint64_t block = 0;
  uint64_t size = 0;
  const uint64_t control = ControlBlock(thread_pointer);
  if (!ReadStackBlock(control, &block, &size) || sp < block || sp >= control)
    return {.is_known = false};
  return {.low = sp & ~uint64_t{7}, .high = control};
}

// glibc puts `control`, the control block, at the top of the stack block; what it says is
// believed only if that fits.
bool ThreadLayout::ReadStackBlock(uint64_t control,
                                  uint64_t* block,
                                  uint64_t* size) const {
  if (stack_block_offset_ == 0)
    return false;
  *block = Load(control + stack_block_offset_);
  *size = Load(control + stack_block_offset_ + 8);
  return *block != 0 && *size < kMaxStackSize && control > *block &&
         control - *block < *size;
}

StackBounds ThreadLayout::ReadableStack(uint64_t thread_pointer) const {
  if (thread_pointer == main_thread_pointer_)
    return {.low = (main_stack_high_ - kInitialMainStack) & ~uint64_t{7},
            .high = main_stack_high_};
  uint64_t block = 0;
  uint64_t size = 0;
  const uint64_t control = ControlBlock(thread_pointer);
  if (!ReadStackBlock(control, &block, &size))
    return {.is_known = false};
  const uint64_t guard = Load(control + stack_block_offset_ + 16);
  return guard < size ? StackBounds{.low = block + guard, .high = control}
                      : StackBounds{.is_known = false};
}

StackBounds ForeignStack(const StackRegions& regions, uint64_t sp) {
  const StackBounds page{
      .low = sp & ~uint64_t{7},
      .high = (sp & ~uint64_t{rt::kSmallestPage - 1}) + rt::kSmallestPage,
      .is_known = false};
  const uint32_t version = regions.version.load(std::memory_order_acquire);
  if (version % 2 != 0)
    return page;
  const size_t count =
      std::min<size_t>(regions.count.load(std::memory_order_relaxed), kMaxStackRegions);
  size_t low = 0;
  size_t high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (regions.regions[middle].high.load(std::memory_order_relaxed) <= sp)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == count)
    return page;
  const uint64_t start = regions.regions[low].low.load(std::memory_order_relaxed);
  const uint64_t end = regions.regions[low].high.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (regions.version.load(std::memory_order_relaxed) != version || sp < start ||
      sp >= end)
    return page;
  return {.low = sp & ~uint64_t{7}, .high = end};
}

uint64_t LiveStack::CopyEnd(uint64_t sp) const {
  if (own_.Contains(sp))
    return own_.high;
  // A foreign region may have shrunk since the engine saw it; the walk touches only
  // frames that exist, but a copy would run to its end. The page of sp is certainly
  // there.
  if (bounds_.Contains(sp))
    return std::min(bounds_.high,
                    (sp & ~uint64_t{rt::kSmallestPage - 1}) + rt::kSmallestPage);
  return sp;
}

void StackMemo::PrepareFor(const ThreadSlot* owner, uint32_t rules_version) {
  if (owner_ == owner && rules_version_ == rules_version)
    return;
  owner_ = owner;
  rules_version_ = rules_version;
  reusable_ = 0;
  sent_ = 0;
}

void StackMemo::Forget() {
  if (owner_ != nullptr)  // else its pages were never touched
    owner_ = nullptr;
}

// How many of the frames [0, count) are NOT proved: 0 means that the whole outer stack is
// as it was. The innermost of them, count - 1, is known to be the same.
size_t StackMemo::ProveCallers(size_t count, const LiveStack& stack) const {
  for (size_t i = count - 1; i > 0; --i) {
    const Frame& frame = frames_[i];
    const Frame& caller = frames_[i - 1];
    uint64_t value = 0;
    if (HPD_UNLIKELY(
            frame.saved.bp_slot == kNotReusable ||
            !stack.Read(SavedBase(caller.at) - 8 * uint64_t{frame.saved.return_slot()},
                        &value) ||
            WithoutSignature(value) != caller.at.key))
      return i;
    if (frame.saved.bp_slot != 0 &&
        (!stack.Read(SavedBase(caller.at) - 8 * uint64_t{frame.saved.bp_slot}, &value) ||
         value != caller.at.bp))
      return i;
  }
  return 0;
}

// False: certainly not any more. Where the return address to it stands is known without
// its callee, which has gone, only if that is the same in all functions.
bool StackMemo::MayBeCalledFrom(const Frame& frame, const LiveStack& stack) {
  uint64_t value = 0;
  return SavedPlaces::kReturnSlot == 0 ||
         (stack.Read(frame.at.sp - 8 * uint64_t{SavedPlaces::kReturnSlot}, &value) &&
          value == frame.at.key);
}

uint64_t StackMemo::FindAnchor(const WalkResult& walk,
                               const LiveStack& stack,
                               Cursor* anchor) const {
  // Just above, where the new frames are, old values may stand that mean nothing now.
  constexpr uint64_t kMargin = 1024;
  const uint64_t end = stack.CopyEnd(walk.stopped.sp);
  size_t count = std::min(reusable_, sent_);
  while (count > 0 && frames_[count - 1].at.sp < walk.stopped.sp + kMargin)
    --count;
  while (count > 0) {
    const Frame& frame = frames_[count - 1];
    const size_t unproved =
        MayBeCalledFrom(frame, stack) ? ProveCallers(count, stack) : count - 1;
    if (unproved == 0)
      break;
    count = unproved;
  }
  // The innermost is often another call in a function that has gone on since, its return
  // address not yet overwritten. And a frame that keeps no rbp hands on one that may have
  // changed.
  while (count > 0) {
    --count;
    if (count == 0 || frames_[count - 1].at.sp > end)
      return 0;
    const Frame& frame = frames_[count - 1];
    if (frame.uses_bp || frame.saved.bp_slot != 0) {
      *anchor = Cursor{
          .key = frame.at.key, .sp = frame.at.sp, .bp = frame.uses_bp ? frame.at.bp : 0};
      return frame.hash;
    }
  }
  return 0;
}

// Moves the new frames [inner, kCapacity) behind the old ones [0, outer) and continues
// the hash.
void StackMemo::Join(size_t outer, size_t inner) {
  uint64_t hash = outer > 0 ? frames_[outer - 1].hash : kEmptyStackHash;
  count_ = outer;
  sent_ = std::min(sent_, outer);
  for (size_t i = inner; i < kCapacity; ++i) {
    frames_[count_] = frames_[i];
    hash = ExtendStackHash(hash, frames_[i].at.key);
    frames_[count_++].hash = hash;
  }
}

void WalkHints::Prefetch(const RuleTable& rules, uint64_t innermost_key) const {
  for (const std::atomic<uint16_t>& place : places_[IndexOf(innermost_key)])
    rules.Prefetch(place.load(std::memory_order_relaxed));
}

void WalkHints::Remember(const RuleTable& rules,
                         const StackMemo& memo,
                         size_t new_count) {
  if (new_count < 3)
    return;
  std::atomic<uint16_t>* places = places_[IndexOf(memo.key(0))];
  for (size_t i = 0; i < kPlaces && i + 1 < new_count; ++i) {
    const uint16_t place = rules.PlaceOf(memo.key(i + 1));
    if (places[i].load(std::memory_order_relaxed) != place)
      places[i].store(place, std::memory_order_relaxed);
  }
}

namespace {

WalkEnd EndOf(StepResult step) {
  switch (step) {
    case StepResult::kNoRule:
      return WalkEnd::kNoRule;
    case StepResult::kCut:
      return WalkEnd::kCut;
    case StepResult::kBadMemory:
      return WalkEnd::kBadMemory;
    case StepResult::kOk:
    case StepResult::kEnd:
      break;
  }
  return WalkEnd::kComplete;
}

}  // namespace

WalkResult WalkStack(const RuleTable& rules,
                     Cursor cursor,
                     const LiveStack& stack,
                     StackMemo& memo) {
  WalkResult result;
  size_t outer = memo.reusable_;        // frames [0, outer) are of the last walk
  size_t inner = StackMemo::kCapacity;  // frames [inner, kCapacity) are new
  bool is_reusable = true;
  memo.reusable_ = 0;
  while (true) {
    result.stopped = cursor;
    while (outer > 0 && memo.frames_[outer - 1].at.sp < cursor.sp)
      --outer;
    if (outer > 0 && memo.frames_[outer - 1].at == cursor) {
      const size_t unproved = memo.ProveCallers(outer, stack);
      if (HPD_LIKELY(unproved == 0 &&
                     outer + (StackMemo::kCapacity - inner) <= kMaxFrames)) {
        result.end = memo.reusable_end_;
        break;
      }
      // They are as they were, but what is outside of them is not, or too far out.
      while (outer > unproved && StackMemo::kCapacity - inner < kMaxFrames)
        memo.frames_[--inner] = memo.frames_[--outer];
      if (outer > unproved) {
        result.end = WalkEnd::kTooDeep;
        is_reusable = false;
        break;
      }
      const StackMemo::Frame& last = memo.frames_[inner];
      cursor = last.at;
      result.stopped = cursor;
    } else if (StackMemo::kCapacity - inner == kMaxFrames) {
      result.end = WalkEnd::kTooDeep;
      is_reusable = false;
      break;
    } else {
      memo.frames_[--inner] = {.at = cursor, .hash = 0, .saved = {}, .uses_bp = false};
    }
    const Rule rule = rules.Find(cursor.key);
    if (HPD_UNLIKELY(rule.kind == RuleKind::kNoCode &&
                     inner + 1 < StackMemo::kCapacity)) {
      ++inner;
      outer = 0;
      is_reusable = false;  // the next time code may have called
      result.end = WalkEnd::kCut;
      break;
    }
    memo.frames_[inner].saved = SavedPlacesOf(rule);
    if (!HasSavedPlaces(rule))
      memo.frames_[inner].saved.bp_slot = StackMemo::kNotReusable;
    memo.frames_[inner].uses_bp = UsesBp(rule);
    const StepResult step = Step(rule, cursor, stack);
    if (HPD_LIKELY(step == StepResult::kOk))
      continue;
    result.end = EndOf(step);
    if (result.end != WalkEnd::kNoRule)
      outer = 0;
    is_reusable = rule.kind == RuleKind::kEnd || rule.kind == RuleKind::kStop;
    break;
  }
  if (result.end == WalkEnd::kTooDeep)
    outer = 0;
  result.new_count = static_cast<uint16_t>(StackMemo::kCapacity - inner);
  memo.Join(outer, inner);
  if (result.end == WalkEnd::kNoRule) {
    memo.reusable_ = outer;  // what is outside of the unknown code may still be as it was
    return result;
  }
  memo.reusable_ = is_reusable ? memo.count_ : 0;
  memo.reusable_end_ = result.end;
  result.hash = memo.count_ > 0 ? memo.frames_[memo.count_ - 1].hash : kEmptyStackHash;
  return result;
}

}  // namespace heapprofd
