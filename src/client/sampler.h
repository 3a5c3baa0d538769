// Poisson sampling of bytes: every byte allocated is a sampling point with probability
// 1/interval, drawn as an exponential countdown per thread. An allocation of s bytes is
// sampled with p = 1 - exp(-s/interval); the engine weighs it by 1/p, which makes bytes
// and counts unbiased. Allocations of at least `interval` bytes are always recorded, with
// p = 1.
//
// The countdown is spent in chunks of at most `interval` bytes (ThreadSlot::bytes_left),
// so that one compare in the hook catches both an expired countdown and a large
// allocation. Integers only: no floating point register of the target is used.
#pragma once

#include <cstdint>

#include "wire/shared_memory.h"

namespace heapprofd {

// floor(E) + 1 with E exponentially distributed with mean `interval`: an allocation of s
// bytes is sampled iff s >= the countdown, which has exactly the probability 1 -
// exp(-s/interval). `random` is uniform.
uint64_t ExponentialCountdown(uint64_t interval, uint64_t random);

// xorshift64*; the state is never 0.
uint64_t NextRandom(uint64_t* state);

// Begins a fresh countdown for `interval`; the totals keep their value.
void RestartCountdown(ThreadSlot& slot, uint64_t interval);

enum class SampleDecision : uint8_t {
  kSkip,
  kSample,  // record it; interval_in_force says for which interval it was drawn
};

// Slow path of the countdown, for an allocation with size >= slot.bytes_left. Counts it
// in the totals and moves the countdown on; `interval` is the session's current one and
// takes effect behind this allocation.
SampleDecision CountDown(ThreadSlot& slot, uint64_t size, uint64_t interval);

}  // namespace heapprofd
