#include "client/stack_evidence.h"

#include <algorithm>

#include "rt/syscall.h"

namespace heapprofd {
namespace {

void AddCopy(StackEvidence& evidence, const Cursor& from, const LiveStack& stack) {
  const uint64_t limit = std::min<uint64_t>(
      {g_session.engine()->control.max_stack_copy.load(std::memory_order_relaxed),
       kMaxStackCopy, g_session.ring().size() / 4});
  const uint64_t start = from.sp & ~uint64_t{7};
  const uint64_t end = stack.CopyEnd(start);
  evidence.copy_from = from;
  evidence.copy_size = std::min(end - start, limit & ~uint64_t{7});
  evidence.flags |= kSampleHasStackCopy;
}

// The copy need not go further out than to frames that the engine knows.
void ShortenCopy(StackEvidence& evidence,
                 const WalkResult& walk,
                 const LiveStack& stack) {
  const uint64_t hash = evidence.memo->FindAnchor(walk, stack, &evidence.anchor);
  const uint64_t size = evidence.anchor.sp - (walk.stopped.sp & ~uint64_t{7});
  if (hash == 0 || size > evidence.copy_size)
    return;
  evidence.outer_hash = hash;
  evidence.copy_size = size & ~uint64_t{7};
}

std::atomic<uint64_t>& KnownStack(uint64_t hash) {
  return g_session.known_stacks[hash % kKnownStacks];
}

// The engine can ask for all frames again by a new epoch.
uint64_t KnownMark(uint64_t hash) {
  const uint64_t epoch =
      g_session.engine()->control.known_stacks_epoch.load(std::memory_order_relaxed);
  return hash ^ epoch << 32;
}

void AddWalk(StackEvidence& evidence,
             const WalkResult& walk,
             const Cursor& caller,
             const LiveStack& stack,
             bool is_check) {
  switch (walk.end) {
    case WalkEnd::kCut:
    case WalkEnd::kTooDeep:
      evidence.flags |= walk.end == WalkEnd::kCut ? kSampleCut : kSampleTooDeep;
      [[fallthrough]];
    case WalkEnd::kComplete:
      evidence.hash = walk.hash;
      evidence.outer_hash = kEmptyStackHash;
      if (is_check) {
        evidence.flags |= kSampleIsCheck;
        AddCopy(evidence, caller, stack);
      }
      break;
    case WalkEnd::kNoRule:
      evidence.key_count = walk.new_count - 1;  // the last one begins the copy
      AddCopy(evidence, walk.stopped, stack);
      ShortenCopy(evidence, walk, stack);
      break;
    case WalkEnd::kBadMemory:
      evidence.flags |= kSampleBadMemory;
      if ((evidence.flags & kSampleForeignStack) == 0) {
        evidence.key_count = 0;  // a rule is wrong: let the engine unwind all of it
        AddCopy(evidence, caller, stack);
      }
      break;
  }
}

}  // namespace

StackEvidence TakeStack(const Cursor& caller,
                        const ThreadSlot& slot,
                        StackMemo* memo,
                        bool is_check) {
  const SessionControl& control = g_session.engine()->control;
  const uint64_t thread_pointer = rt::ThreadPointer();
  const StackBounds own = g_session.layout.OwnStack(thread_pointer, caller.sp);
  const StackBounds bounds =
      own.is_known ? own : ForeignStack(g_session.engine()->stack_regions, caller.sp);
  const LiveStack stack(
      bounds, own.is_known ? own : g_session.layout.ReadableStack(thread_pointer));
  StackEvidence evidence;
  if (!bounds.is_known)
    evidence.flags |= kSampleForeignStack;
  const uint32_t modules =
      g_session.client()->ring.modules_epoch.load(std::memory_order_relaxed);
  if (memo == nullptr || control.rules_epoch.load(std::memory_order_acquire) != modules) {
    AddCopy(evidence, caller, stack);
    return evidence;
  }
  memo->PrepareFor(&slot, control.known_stacks_epoch.load(std::memory_order_relaxed));
  const RuleTable& rules = g_session.engine()->rules;
  g_session.hints.Prefetch(rules, caller.key);
  const WalkResult walk = WalkStack(rules, caller, stack, *memo);
  g_session.hints.Remember(rules, *memo, walk.new_count);
  evidence.memo = memo;
  evidence.key_count = static_cast<uint16_t>(memo->frame_count());
  AddWalk(evidence, walk, caller, stack, is_check);
  return evidence;
}

void PrefetchKnownStack(const StackEvidence& evidence) {
  __builtin_prefetch(&KnownStack(evidence.hash));
}

void LeaveOutKnownFrames(StackEvidence& evidence) {
  const bool is_known = evidence.memo->unsent_count() == 0 ||
                        KnownStack(evidence.hash).load(std::memory_order_relaxed) ==
                            KnownMark(evidence.hash);
  evidence.key_count =
      is_known ? uint16_t{0} : static_cast<uint16_t>(evidence.memo->unsent_count());
  evidence.outer_hash = is_known ? evidence.hash : evidence.memo->sent_hash();
}

void RememberSent(const StackEvidence& evidence, uint64_t record_end) {
  if (evidence.key_count > 0 || evidence.copy_size > 0) {
    uint64_t end = g_session.frames_end.load(std::memory_order_relaxed);
    while (end < record_end &&
           !g_session.frames_end.compare_exchange_weak(end, record_end)) {
    }
  }
  if (evidence.hash == 0)
    return;
  evidence.memo->MarkSent();
  if (evidence.key_count > 0)
    KnownStack(evidence.hash).store(KnownMark(evidence.hash), std::memory_order_relaxed);
}

}  // namespace heapprofd
