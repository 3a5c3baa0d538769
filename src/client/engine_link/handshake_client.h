// Meeting the engine: connect, Hello, Welcome, map the two memory files, close every
// descriptor again.
#pragma once

#include <cstdint>

#include "client/session.h"
#include "wire/handshake.h"

namespace heapprofd {

// Reads the session variable from the process's environment into `session`. False: not
// asked to profile.
bool ReadSessionVariable(ClientSession& session);

// The session variable is there, and empty.
bool IsProfilingForbidden();

enum class ConnectResult : uint32_t {
  kConnected,
  kNoDescriptor,  // there is none left for a socket
  kUnreached,     // the engine's socket is not there for this process, or not allowed
  kUnanswered,    // in time; the engine will see that it was asked
  kFailed,        // no engine, it declined, or memory could not be mapped
};

// Nothing is left behind where there is no connection.
ConnectResult Connect(ClientSession& session, ClientOrigin origin);

// Replaces the mappings of a session that is over, or the parent process's, by memory of
// nobody's: a thread may still be in the middle of a record there.
void Retire(ClientSession& session);

// Value in the process's initial environment, or nullptr.
const char* FindVariable(const char* name);

// Says so, if there is an engine to hear it; waits for nothing.
ConnectResult SendExecNotice(const ClientSession& session, const ExecNotice& notice);

// What a forked child has inherited of its parent's ring, but for the slots in which its
// threads may still count.
void RetireClient(const SessionMemory& memory);

// Gives the memory of an ancestor's session back. No other thread may exist.
void Unmap(SessionMemory* memory);

// The session's tables, which are mapped when they are asked for first; nullptr: there is
// no room for them, or no system call may be made.
ClientTables* SessionTables();

}  // namespace heapprofd
