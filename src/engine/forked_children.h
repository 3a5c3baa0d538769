// Forked children of a target that have no session of their own: what they have counted
// in the target's memory (client/forked_child.h), and whether they still count.
#pragma once

#include <cstdint>

#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

ForkedChildren CountForkedChildren(const ClientBlock& client);

// Gives the slots of children that have ended to the next ones. Thread ids must mean the
// same to the target's children as to us. Returns how many slots are still owned.
uint32_t FreeSlotsOfEnded(ClientBlock& client);

// Without looking who has ended.
uint32_t CountOwnedForkSlots(const ClientBlock& client);

}  // namespace heapprofd
