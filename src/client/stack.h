// Taking the calling thread's stack: bounds, walk by the shared rules, hash.
//
// Nothing here can fault: the walk reads only inside bounds that are known to be mapped,
// and where no bounds are known only inside the page that the stack pointer is in.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rt/machine.h"
#include "walk/rule_table.h"
#include "walk/stack_hash.h"
#include "walk/step.h"
#include "wire/records.h"
#include "wire/shared_memory.h"

namespace heapprofd {

struct StackBounds {
  uint64_t low = 0;
  uint64_t high = 0;  // one past the last readable byte
  bool is_known = true;

  bool Contains(uint64_t sp) const { return sp >= low && sp < high; }
};

// Where this libc keeps a thread's own description, found once by ThreadLayout::Discover.
class ThreadLayout {
 public:
  // Must run on the main thread. Reads the main thread's control block; what it finds is
  // checked on every use, and with an unknown libc all stacks are simply taken as foreign
  // ones.
  void Discover(uint64_t thread_pointer, int pid);

  // Kernel thread id, 0 when unknown.
  uint32_t ThreadId(uint64_t thread_pointer) const;

  // The thread's own stack, if `sp` is on it; otherwise bounds with low == high.
  StackBounds OwnStack(uint64_t thread_pointer, uint64_t sp) const;

  // The part of the thread's own stack that is readable wherever the thread runs now: a
  // signal handler on an alternate stack has interrupted frames there.
  StackBounds ReadableStack(uint64_t thread_pointer) const;

 private:
  uint64_t ControlBlock(uint64_t thread_pointer) const {
    return rt::ControlBlock(thread_pointer, control_block_size_);
  }

  bool ReadStackBlock(uint64_t control, uint64_t* block, uint64_t* size) const;

  uint64_t control_block_size_ = 0;  // bytes
  uint64_t tid_offset_ = 0;          // 0: unknown
  uint64_t stack_block_offset_ = 0;  // 0: unknown; the size is in the next word
  uint64_t main_thread_pointer_ = 0;
  uint64_t main_stack_high_ = 0;
};

// Bounds for a stack that is not the thread's own: a region the engine published, else
// the page of `sp`.
StackBounds ForeignStack(const StackRegions& regions, uint64_t sp);

// Memory for walk/step.h: the live stack within bounds.
class LiveStack {
 public:
  LiveStack(StackBounds bounds, StackBounds own) : bounds_(bounds), own_(own) {}

  bool Read(uint64_t address, uint64_t* value) const {
    // A signal frame may lead from an alternate stack back to the thread's own.
    if (!Holds(bounds_, address) && !Holds(own_, address))
      return false;
    *value = *reinterpret_cast<const volatile uint64_t*>(address);
    return true;
  }

  // One past the last byte that can be copied from `sp` on.
  uint64_t CopyEnd(uint64_t sp) const;

 private:
  static bool Holds(const StackBounds& bounds, uint64_t address) {
    return address >= bounds.low && address < bounds.high && bounds.high - address >= 8 &&
           address % 8 == 0;
  }

  StackBounds bounds_;
  StackBounds own_;
};

enum class WalkEnd : uint8_t {
  kComplete,
  kNoRule,     // the engine must be asked: `stopped` is the frame without a rule
  kTooDeep,    // frames are the innermost kMaxFrames
  kCut,        // code without unwind information
  kBadMemory,  // the rules led out of the stack
};

struct WalkResult {
  WalkEnd end = WalkEnd::kComplete;
  uint64_t hash = 0;       // of the keys (walk/stack_hash.h)
  Cursor stopped;          // the outermost frame that was reached
  uint16_t new_count = 0;  // frames that were walked, innermost first in the memo
};

// The stack of the last walk, which makes the next one of the same thread cheap: most of
// its outer frames are still there.
//
// A frame is the same as before if its registers are; its caller is the same if, further,
// the return address and the saved bp stand unchanged where the last walk read them. So
// the outer part of the stack is proved equal by comparing memory with what was there,
// without looking up a single rule, and the result is what a full walk would give.
class StackMemo {
 public:
  size_t frame_count() const { return count_; }

  // Key of a frame of the last walk, 0 is the innermost.
  uint64_t key(size_t i) const { return frames_[count_ - 1 - i].at.key; }

  // Forgets the last walk unless it was made by this thread and under these rules.
  void PrepareFor(const ThreadSlot* owner, uint32_t rules_version);

  // Forgets everything: the process or its engine is another one.
  void Forget();

  // The engine knows the frames of the last walk from now on.
  void MarkSent() { sent_ = count_; }

  // Number of inner frames of the last walk that the engine does not know.
  size_t unsent_count() const { return count_ - sent_; }

  // Outer frames of an earlier walk that were left above the frame where this walk
  // stopped, are known to the engine and stand unchanged: sets the registers of the
  // innermost of them (bp 0: it does not matter) and returns the hash of all, or 0.
  // Whether the stack leads there is for the unwinder to see.
  uint64_t FindAnchor(const WalkResult& walk,
                      const LiveStack& stack,
                      Cursor* anchor) const;

  // Hash of the outer frames that it knows.
  uint64_t sent_hash() const {
    return sent_ > 0 ? frames_[sent_ - 1].hash : kEmptyStackHash;
  }

 private:
  friend WalkResult WalkStack(const RuleTable& rules,
                              Cursor cursor,
                              const LiveStack& stack,
                              StackMemo& memo);

  static constexpr size_t kCapacity = 2 * kMaxFrames;
  static constexpr uint32_t kNotReusable = 1;  // no rule with saved places has this slot

  // Frames in the order from the outermost to the innermost.
  struct Frame {
    Cursor at;
    uint64_t hash = 0;  // of this frame's key and those of all outer ones
    // Of the rule that leads from this frame to its caller: the places, or the bp_slot
    // kNotReusable, and whether the frame's place depends on bp.
    SavedPlaces saved{};
    bool uses_bp = false;
  };

  static bool MayBeCalledFrom(const Frame& frame, const LiveStack& stack);
  size_t ProveCallers(size_t count, const LiveStack& stack) const;
  void Join(size_t outer, size_t inner);

  const ThreadSlot* owner_ = nullptr;
  uint32_t rules_version_ = 0;
  size_t reusable_ = 0;  // frames [0, reusable_) stand for a whole stack
  size_t sent_ = 0;      // frames [0, sent_) are known to the engine
  WalkEnd reusable_end_{};
  size_t count_ = 0;
  Frame frames_[kCapacity];
};

// Which rules the last walk from the same innermost frame needed. Each rule says where
// the next key stands, so a walk waits for one cache miss after the other; what a walk
// needed last time can be asked for all at once.
//
// Any thread may write at any time: a wrong hint costs time only.
class WalkHints {
 public:
  void Prefetch(const RuleTable& rules, uint64_t innermost_key) const;
  void Remember(const RuleTable& rules, const StackMemo& memo, size_t new_count);

 private:
  static constexpr size_t kHints = 2048;
  static constexpr size_t kPlaces = 8;  // frames next to the innermost one

  static size_t IndexOf(uint64_t key) { return (key ^ key >> 11) % kHints; }

  std::atomic<uint16_t> places_[kHints][kPlaces];
};

// Walks by the rules from `cursor` outward; the frames are then in `memo`.
WalkResult WalkStack(const RuleTable& rules,
                     Cursor cursor,
                     const LiveStack& stack,
                     StackMemo& memo);

}  // namespace heapprofd
