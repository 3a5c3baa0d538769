// Sockets of sessions whose recorder was killed, and the directories that they are in: the
// next session of the same user in the same place removes them.
//
// The name of a session's socket is there only while somebody listens, or has: where a
// connection is refused nobody will listen again.
#pragma once

#include <string>

namespace heapprofd {

// What the names of the directories begin with.
inline constexpr char kSessionDirectory[] = "heap_profile-";

inline constexpr char kSessionSocketName[] = "socket";

// Those of this user below `parent`. Whatever cannot be removed stays.
void RemoveEndedSockets(const std::string& parent);

}  // namespace heapprofd
