// Forked children of a target that have no session of their own: what they have counted
// in the target's memory (client/forked_child.h), and whether they still count.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

ForkedChildren CountForkedChildren(const ClientBlock& client);

// Threads that own slots, as they know themselves, 256 at most: each the first one of a
// child that allocated. What is there is the target's choice.
std::vector<pid_t> OwnersOfForkSlots(const ClientBlock& client);

// How many slots have an owner, who may have ended (engine/ended_owners.h).
uint32_t CountOwnedForkSlots(const ClientBlock& client);

}  // namespace heapprofd
