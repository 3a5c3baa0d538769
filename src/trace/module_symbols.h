// ModuleSymbols: what addresses mean in source code. Readers match them against frames by
// the mapping's name, build id and rel_pc, all of them exactly.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

// Components of a mapping's path; empty ones are dropped.
std::vector<std::string_view> PathComponents(std::string_view path);

// Serialized messages for all frames with known lines, each small enough for a packet.
std::vector<std::string> ModuleSymbolsMessages(std::span<const Mapping> mappings,
                                               std::span<const Frame> frames);

}  // namespace heapprofd
