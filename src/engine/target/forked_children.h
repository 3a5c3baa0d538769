// Forked children of a target that have no session of their own: what they have counted
// in the target's memory (client/forked_child.h), and whether they still count.
#pragma once

#include <cstdint>

#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

ForkedChildren CountForkedChildren(const ClientBlock& client);

// How many slots have an owner, who may have ended (engine/ended_owners.h).
uint32_t CountOwnedForkSlots(const ClientBlock& client);

}  // namespace heapprofd
