// Stacks of frames to callsites, for the millions of stacks that a trace lists; for
// conversions to whole stacks, one look-up each.
//
// A callsite is found by its parent and its frame: one look-up per frame, each of which
// waits for memory and for the one before it. So what a stack shares with the previous
// one is not looked up at all, runs of kRun frames have a table of their own, and stacks
// are interned in batches: a first pass goes down all stacks of a batch side by side and
// only prefetches the memory that the second pass, which does the work, will need.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/column.h"
#include "base/row_index.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class StackInterner {
 public:
  // `builder` must outlive this.
  explicit StackInterner(TraceBuilder* builder) : builder_(builder) {}

  // A stack is pushed from the outermost frame to the innermost, and then ended.
  void Push(uint32_t frame) { frames_.push_back(frame); }

  // `id` is the caller's name for the stack. True: call Flush() now.
  bool End(uint64_t id);

  // Instead of End(): the frames were for nothing.
  void Drop() { frames_.resize(begin_, 0); }

  // `visit(id, callsite of the innermost frame)` for all ended stacks in their order;
  // where whole stacks are read it is a row of `stacks`. kNoId for a stack without frames.
  template <typename Visit>
  void Flush(Visit visit) {
    if (!builder_->has_whole_stacks())
      PrefetchBatch();
    for (size_t i = 0; i < count_; ++i)
      visit(batch_[i].id, Intern(FramesOf(batch_[i])));
    frames_.clear();
    count_ = begin_ = 0;
  }

 private:
  static constexpr size_t kRun = 4;
  static constexpr size_t kBatch = 32;

  // `callsite` is where the frames lead from `parent`.
  struct Run {
    uint32_t parent;
    std::array<uint32_t, kRun> frames;
    uint32_t callsite;
  };

  // How far the first pass has come down a stack.
  struct Stack {
    uint64_t id;
    size_t begin;  // in frames_
    size_t end;
    size_t depth;
    uint32_t parent;
    uint32_t row;  // of what may lead further
    bool is_lost;  // nothing does
  };

  std::span<const uint32_t> FramesOf(const Stack& stack) const {
    return frames_.span().subspan(stack.begin, stack.end - stack.begin);
  }

  bool Matches(uint32_t run, uint32_t parent, const uint32_t* frames) const;
  void PrefetchBatch();
  bool PrefetchRuns();
  void PrefetchCallsites();
  uint32_t Intern(std::span<const uint32_t> frames);
  size_t SharedDepth(std::span<const uint32_t> frames) const;
  uint32_t InternRun(uint32_t parent, std::span<const uint32_t> stack, size_t depth);
  uint32_t InternFrame(uint32_t parent, std::span<const uint32_t> frames, size_t depth);
  void PrefetchNew(uint32_t parent, std::span<const uint32_t> frames, size_t depth) const;

  TraceBuilder* builder_;
  Column<uint32_t> frames_;  // of all stacks of the batch
  std::array<Stack, kBatch> batch_;
  size_t count_ = 0;
  size_t begin_ = 0;  // of the stack that is pushed
  // Of the previous stack: frames, and the callsites at each depth. Those inside of a run
  // that was found are not known (kNoId).
  Column<uint32_t> last_frames_;
  Column<uint32_t> last_callsites_;
  bool is_new_ = false;  // the latest callsite
  Column<Run> runs_;
  RowIndex run_index_;
};

}  // namespace heapprofd
