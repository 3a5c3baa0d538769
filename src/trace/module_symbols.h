// ModuleSymbols: what addresses mean in source code. Readers match them against frames by
// the mapping's name, build id and rel_pc, all of them exactly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

// Components of a mapping's path; empty ones are dropped.
std::vector<std::string_view> PathComponents(std::string_view path);

// Of which modules symbols are told. Without a build id only the name says which module
// is meant: enough for a file within one recording, and for code made at run time where
// there is one process.
enum class NamedModules : uint8_t { kWithBuildId, kFiles, kAll };

// Serialized messages for all frames with known lines, each small enough for a packet.
// Where frames of a module without a build id contradict one another, for none of them.
std::vector<std::string> ModuleSymbolsMessages(std::span<const Mapping> mappings,
                                               std::span<const Frame> frames,
                                               NamedModules named);

}  // namespace heapprofd
