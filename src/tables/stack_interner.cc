#include "tables/stack_interner.h"

#include <algorithm>

namespace heapprofd {
namespace {

uint64_t HashOfRun(uint32_t parent, const uint32_t* frames) {
  uint64_t hash = (uint64_t{parent} << 32 | frames[0]) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  hash = (hash ^ frames[1]) * 0xbf58476d1ce4e5b9u;
  hash ^= hash >> 29;
  hash = (hash ^ (uint64_t{frames[2]} << 32 | frames[3])) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 32);
}

}  // namespace

bool StackInterner::End(uint64_t id) {
  batch_[count_++] = {.id = id,
                      .begin = begin_,
                      .end = frames_.size(),
                      .depth = 0,
                      .parent = kNoId,
                      .row = kNoId,
                      .is_lost = false};
  begin_ = frames_.size();
  return count_ == kBatch;
}

bool StackInterner::Matches(uint32_t run, uint32_t parent, const uint32_t* frames) const {
  return runs_[run].parent == parent &&
         std::equal(frames, frames + kRun, runs_[run].frames.begin());
}

void StackInterner::PrefetchBatch() {
  while (PrefetchRuns()) {
  }
  for (size_t i = 0; i < kRun; ++i)
    PrefetchCallsites();
}

// One run further down every stack that has one. False: none has.
bool StackInterner::PrefetchRuns() {
  const std::span<Stack> stacks(batch_.data(), count_);
  const auto has_run = [](const Stack& stack) {
    return !stack.is_lost && stack.end - stack.begin - stack.depth >= kRun;
  };
  const auto frames_of = [this](const Stack& stack) {
    return frames_.span().data() + stack.begin + stack.depth;
  };
  bool is_further = false;
  for (const Stack& stack : stacks) {
    if (has_run(stack))
      run_index_.Prefetch(HashOfRun(stack.parent, frames_of(stack)));
  }
  for (Stack& stack : stacks) {
    if (!has_run(stack))
      continue;
    stack.row = run_index_.LikelyRow(HashOfRun(stack.parent, frames_of(stack)));
    if (stack.row != kNoId)
      __builtin_prefetch(&runs_[stack.row]);
  }
  for (Stack& stack : stacks) {
    if (!has_run(stack))
      continue;
    stack.is_lost =
        stack.row == kNoId || !Matches(stack.row, stack.parent, frames_of(stack));
    if (!stack.is_lost) {
      stack.parent = runs_[stack.row].callsite;
      stack.depth += kRun;
      is_further = true;
    }
  }
  return is_further;
}

// One frame further down every stack that has one.
void StackInterner::PrefetchCallsites() {
  const std::span<Stack> stacks(batch_.data(), count_);
  const auto has_frame = [](const Stack& stack) {
    return stack.end - stack.begin > stack.depth;
  };
  const auto frame_of = [this](const Stack& stack) {
    return frames_[stack.begin + stack.depth];
  };
  for (const Stack& stack : stacks) {
    if (has_frame(stack))
      builder_->callsites().Prefetch(stack.parent, frame_of(stack));
  }
  for (Stack& stack : stacks) {
    if (has_frame(stack))
      stack.row = builder_->callsites().Likely(stack.parent, frame_of(stack));
  }
  for (Stack& stack : stacks) {
    if (!has_frame(stack))
      continue;
    if (!builder_->callsites().Is(stack.row, stack.parent, frame_of(stack))) {
      stack.depth = stack.end - stack.begin;  // a new one
    } else {
      stack.parent = stack.row;
      ++stack.depth;
    }
  }
}

// How deep the stack leads to a callsite that is known from the previous one.
size_t StackInterner::SharedDepth(std::span<const uint32_t> frames) const {
  const size_t limit = std::min(frames.size(), last_frames_.size());
  size_t depth = 0;
  while (depth < limit && frames[depth] == last_frames_[depth])
    ++depth;
  while (depth > 0 && last_callsites_[depth - 1] == kNoId)
    --depth;
  return depth;
}

uint32_t StackInterner::InternFrame(uint32_t parent,
                                    std::span<const uint32_t> frames,
                                    size_t depth) {
  const size_t rows = builder_->trace().callsites.row_count();
  const uint32_t callsite = builder_->InternCallsite(parent, frames[depth]);
  last_callsites_.push_back(callsite);
  if (callsite == rows && !is_new_)
    PrefetchNew(callsite, frames, depth + 1);
  is_new_ = callsite == rows;
  return callsite;
}

// Below a new callsite all are new, and will have the next numbers.
void StackInterner::PrefetchNew(uint32_t parent,
                                std::span<const uint32_t> frames,
                                size_t depth) const {
  constexpr size_t kMaxCalls = 64;
  const size_t end = std::min(frames.size(), depth + kMaxCalls);
  for (; depth < end; ++depth, ++parent) {
    builder_->callsites().Prefetch(parent, frames[depth]);
    if (depth % kRun == 0 && frames.size() - depth >= kRun)
      run_index_.Prefetch(HashOfRun(parent, &frames[depth]));
  }
}

uint32_t StackInterner::InternRun(uint32_t parent,
                                  std::span<const uint32_t> stack,
                                  size_t depth) {
  const uint32_t* const frames = &stack[depth];
  run_index_.Prepare([this](uint32_t row) {
    return HashOfRun(runs_[row].parent, runs_[row].frames.data());
  });
  uint32_t& row = run_index_.Find(HashOfRun(parent, frames), [&](uint32_t other) {
    return Matches(other, parent, frames);
  });
  if (row != kNoId) {
    last_callsites_.resize(depth + kRun - 1, kNoId);
    last_callsites_.push_back(runs_[row].callsite);
    return runs_[row].callsite;
  }
  Run run{parent, {}, parent};
  std::copy(frames, frames + kRun, run.frames.begin());
  for (size_t i = 0; i < kRun; ++i)
    run.callsite = InternFrame(run.callsite, stack, depth + i);
  row = static_cast<uint32_t>(runs_.size());
  runs_.push_back(run);
  run_index_.CountAdded();
  return run.callsite;
}

uint32_t StackInterner::Intern(std::span<const uint32_t> frames) {
  if (builder_->has_whole_stacks())
    return builder_->InternStack(frames);
  size_t depth = SharedDepth(frames);
  // A whole run costs less than what is left of it.
  if (frames.size() - depth / kRun * kRun >= kRun)
    depth -= depth % kRun;
  uint32_t callsite = depth == 0 ? kNoId : last_callsites_[depth - 1];
  is_new_ = false;
  last_callsites_.resize(depth, kNoId);
  last_frames_.resize(depth, kNoId);
  for (const uint32_t frame : frames.subspan(depth))
    last_frames_.push_back(frame);
  while (depth < frames.size()) {
    if (depth % kRun == 0 && frames.size() - depth >= kRun) {
      callsite = InternRun(callsite, frames, depth);
      depth += kRun;
    } else {
      callsite = InternFrame(callsite, frames, depth);
      ++depth;
    }
  }
  return callsite;
}

}  // namespace heapprofd
