// Taking the calling thread's stack: bounds, walk by the shared rules, hash.
//
// Nothing here can fault: the walk reads only inside bounds that are known to be mapped,
// and where no bounds are known only inside the page that the stack pointer is in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "walk/rule_table.h"
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

 private:
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
  size_t frame_count = 0;
  uint64_t hash = 0;  // of the keys, never 0
  Cursor stopped;     // the last frame of the list
};

// `keys` has room for kMaxFrames.
WalkResult WalkStack(const RuleTable& rules,
                     Cursor cursor,
                     const LiveStack& stack,
                     uint64_t* keys);

}  // namespace heapprofd
