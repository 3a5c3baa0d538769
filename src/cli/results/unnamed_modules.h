// Functions without names as a trace has them, and as the advice about them needs them:
// by the profile's mappings.
#pragma once

#include <vector>

#include "profile/model.h"
#include "profile/recording_end.h"

namespace heapprofd {

std::vector<UnnamedModule> UnnamedModulesOf(const TargetProfile& profile,
                                            const SymbolizeReport& symbols);

// `profile` may have other mapping ids, and lack mappings.
SymbolizeReport SymbolsWithout(const TargetProfile& profile,
                               const std::vector<UnnamedModule>& unnamed);

}  // namespace heapprofd
