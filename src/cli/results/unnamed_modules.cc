#include "cli/results/unnamed_modules.h"

#include <algorithm>

namespace heapprofd {
namespace {

// Memory without a file has no more to be known by than where it is. `starts`: those of
// `code`, in order.
bool IsOf(const Mapping& mapping,
          const UnnamedModule& code,
          const std::vector<uint64_t>& starts) {
  return (code.path.empty() ||
          (mapping.path == code.path && mapping.build_id == code.build_id)) &&
         std::binary_search(starts.begin(), starts.end(), mapping.start);
}

}  // namespace

std::vector<UnnamedModule> UnnamedModulesOf(const TargetProfile& profile,
                                            const SymbolizeReport& symbols) {
  std::vector<UnnamedModule> unnamed;
  for (const ModuleSymbols& module : symbols.modules) {
    if (module.unnamed_frames == 0)
      continue;
    UnnamedModule& code = unnamed.emplace_back();
    code.path = module.path;
    code.build_id = module.build_id;
    code.unnamed_frames = module.unnamed_frames;
    code.reason = module.reason;
    code.error = module.error;
    for (const MappingId id : module.mappings) {
      if (id == kNoId)
        code.is_unmapped = true;
      else
        code.starts.push_back(profile.mappings[id].start);
    }
  }
  return unnamed;
}

SymbolizeReport SymbolsWithout(const TargetProfile& profile,
                               const std::vector<UnnamedModule>& unnamed) {
  SymbolizeReport symbols;
  for (const UnnamedModule& code : unnamed) {
    ModuleSymbols& module = symbols.modules.emplace_back();
    module.path = code.path;
    module.build_id = code.build_id;
    module.frames = module.unnamed_frames = code.unnamed_frames;
    module.reason = code.reason;
    module.error = code.error;
    std::vector<uint64_t> starts = code.starts;
    std::sort(starts.begin(), starts.end());
    for (MappingId id = 0; id < profile.mappings.size(); ++id) {
      if (IsOf(profile.mappings[id], code, starts))
        module.mappings.push_back(id);
    }
    if (code.is_unmapped)
      module.mappings.push_back(kNoId);
  }
  return symbols;
}

}  // namespace heapprofd
