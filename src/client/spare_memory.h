// What a client of a program with many threads, or many sampled blocks, needs beyond its
// own memory. It is mapped when it is needed first, or by the setup of an attached client,
// whose hooks make no system call; not at all where the engine has seen that the program's
// memory is limited.
#pragma once

#include "client/filter.h"
#include "client/session.h"
#include "client/stack.h"
#include "rt/compiler.h"

namespace heapprofd {

// The filter is full: gives it memory, where there is any to be had.
void GiveMemory(SampledFilter& filter);

// Memory for the memos that are not the session's own; nullptr: there is none.
StackMemo* TakeMoreMemos();

// The memo of this number, below kMemos; nullptr: there is no memory for it.
inline StackMemo* MemoOf(unsigned index) {
  if (index < kOwnMemos)
    return &g_session.memos[index];
  StackMemo* more = g_session.more_memos.load(std::memory_order_acquire);
  if (HPD_UNLIKELY(more == nullptr))
    more = TakeMoreMemos();
  return more != nullptr ? &more[index - kOwnMemos] : nullptr;
}

// One bit for each memo that there is memory for.
inline uint64_t MemosThere() {
  constexpr uint64_t kOwn = (uint64_t{1} << kOwnMemos) - 1;
  return g_session.more_memos.load(std::memory_order_relaxed) != nullptr ? ~uint64_t{0}
                                                                         : kOwn;
}

// No memo has a walk that may be gone on with.
void ForgetMemos();

// The program has locked all of its memory, which was not to be the client's: unlocks that
// again, and takes what was read in out of the program's resident memory.
void UnlockOwnMemory();

// The filters have no address any more.
void ForgetFilters();

}  // namespace heapprofd
