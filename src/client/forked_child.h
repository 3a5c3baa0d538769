// What a forked child counts before it has a session of its own, if it ever has one.
//
// It counts in shared memory of the ancestor that has a session, so nothing is lost when
// it ends, in whatever way, and no system call is needed. In a session of its own it
// takes its counts along.
#pragma once

#include "client/session.h"

namespace heapprofd {

// The process is a forked child, and has one thread; which counts in this slot from now
// on.
ThreadSlot* BeginCounting();

// The same for another thread of it; nullptr: there are too many, or were when one looked
// before.
ThreadSlot* ClaimForkSlot();

// It has a session of its own. Its threads still count where they did until they take
// their counts along.
void EndCounting();

// A slot in which a thread of this very process counts.
bool IsForkSlot(const ThreadSlot* slot);

// A sample was due in a fork slot, and could not be taken: nothing of what its owner has
// allocated so far is in the samples, though all of it is counted.
void NoteUnsampled(ThreadSlot& slot);

// Moves what the calling thread has counted in `from`, a fork slot, to `to`: its totals,
// and the countdown under way.
void TakeForkCounts(ThreadSlot& from, ThreadSlot& to);

}  // namespace heapprofd
