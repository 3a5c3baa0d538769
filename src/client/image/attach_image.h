// The attached client's own variables (wire/attached_client.h says what they mean).
#pragma once

#include "wire/attached_client.h"

extern "C" heapprofd::AttachState hpd_attach_state __attribute__((visibility("hidden")));

namespace heapprofd {

// Bytes of the stack that the setup has. Most is for a signal handler, in case the engine
// dies just when it has let signals in again.
inline constexpr size_t kSetupStackSize = 65536;

// For a program whose libc had not begun when the client came: looks for the stacks of
// its threads at the first sample, which is the main thread's.
void DiscoverLayoutLate();

// A session begins: the engine's heart may take its time for the first beat.
void ExpectHeartbeat();

// For a forked child (client/session.h). The threads are the parent's.
void ForgetThreads();
bool FollowsChildren();

// The engine has brought the files of a session of its own.
bool HasOwnFiles();

// With these files.
void BeginOwnSession();

}  // namespace heapprofd
