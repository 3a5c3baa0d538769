// What each hook is to its function: which registers it reads, what is missed without it,
// and which other function it needs.
#pragma once

#include <optional>
#include <string>

#include "attach/prologue.h"
#include "wire/attached_client.h"

namespace heapprofd {

HookContract ContractOf(Hook hook);

// The symbol of its function.
std::string NameOf(Hook hook);

// True if memory that is freed, or moved, through its function is missed without it, and
// shown as live for ever.
bool IsFreeing(Hook hook);

// The function of the same allocator that it calls: a throwing operator new is served by
// its variant that does not throw, and xallocx asks for the size before. nullopt: none.
std::optional<Hook> TwinOf(Hook hook);

}  // namespace heapprofd
