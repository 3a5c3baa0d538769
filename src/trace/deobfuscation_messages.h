// DeobfuscationMapping, the form in which a trace carries ProGuard and R8 mappings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/deobfuscation.h"

namespace heapprofd {

// Serialized messages with the content of `map`, each small enough for a packet.
std::vector<std::string> DeobfuscationMessages(const DeobfuscationMap& map);

// The reverse, of one message.
DeobfuscationMap ReadDeobfuscationMessage(std::string_view message);

}  // namespace heapprofd
