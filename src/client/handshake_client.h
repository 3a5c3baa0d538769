// Meeting the engine: connect, Hello, Welcome, map the two memory files, close every
// descriptor again.
#pragma once

#include <cstdint>

#include "client/session.h"
#include "wire/handshake.h"

namespace heapprofd {

// Reads the session variable from the process's environment into `session`. False: not
// asked to profile.
bool ReadSessionVariable(Session& session);

// False: no engine, it declined, or memory could not be mapped; then nothing is left
// behind.
bool Connect(Session& session, ClientOrigin origin);

// Replaces the mappings of a session that is over by memory of nobody's: a thread may
// still be in the middle of a record there.
void Retire(Session& session);

// Value in the process's initial environment, or nullptr.
const char* FindVariable(const char* name);

// Says so, if there is an engine to hear it; waits for nothing.
void SendExecNotice(const Session& session, const ExecNotice& notice);

// Drops the mappings of a session that belongs to the parent process.
void Unmap(Session& session);

}  // namespace heapprofd
