// Limits that the tool lifts for itself, and that a program it starts must find as they
// were: several descriptors are held for each recorded process, and a limit on the size
// of files is to be an error like a full disk, not the end.
#pragma once

namespace heapprofd {

// Once, at the start.
void LiftOwnLimits();

// In a child that is about to become somebody else's program.
void RestoreLimits();

}  // namespace heapprofd
