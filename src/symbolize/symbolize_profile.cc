#include "symbolize/symbolize_profile.h"

#include <map>
#include <string_view>
#include <utility>

#include "symbolize/elf_symbolizer.h"

namespace heapprofd {
namespace {

// What the kernel adds to the path of a file that has been removed or replaced since.
constexpr std::string_view kDeletedSuffix = " (deleted)";

bool HasFile(const Mapping& mapping) {
  return mapping.path.starts_with('/') && !mapping.path.starts_with("//");  // "//anon"
}

struct ModuleFrames {
  ModuleSymbols report;
  std::vector<FrameId> frames;
};

std::vector<ModuleFrames> GroupByModule(const TargetProfile& profile) {
  std::vector<ModuleFrames> modules;
  std::map<std::pair<std::string_view, std::string_view>, size_t> by_file;
  std::vector<size_t> of_mapping(profile.mappings.size(), SIZE_MAX);
  for (MappingId id = 0; id < profile.mappings.size(); ++id) {
    const Mapping& mapping = profile.mappings[id];
    if (!HasFile(mapping))
      continue;
    const auto [entry, is_new] =
        by_file.try_emplace({mapping.path, mapping.build_id}, modules.size());
    if (is_new) {
      modules.emplace_back();
      modules.back().report.path = mapping.path;
      modules.back().report.build_id = mapping.build_id;
    }
    modules[entry->second].report.mappings.push_back(id);
    of_mapping[id] = entry->second;
  }
  for (FrameId id = 0; id < profile.frames.size(); ++id) {
    const Frame& frame = profile.frames[id];
    if (frame.mapping >= of_mapping.size() || of_mapping[frame.mapping] == SIZE_MAX)
      continue;
    ModuleFrames& module = modules[of_mapping[frame.mapping]];
    ++module.report.frames;
    if (frame.lines.empty())
      module.frames.push_back(id);
  }
  return modules;
}

// Opens, uses and closes one module: what it needs of memory is free again for the next.
void SymbolizeModule(TargetProfile& profile,
                     ModuleFrames& module,
                     const ModuleOpener& open_module,
                     const std::string& debug_path) {
  ModuleSymbols& report = module.report;
  report.unnamed_frames = module.frames.size();
  const ScopedFd fd = open_module(profile.mappings[report.mappings.front()]);
  if (!fd.valid()) {
    report.reason = NoSymbolsReason::kFileGone;
    report.error = "cannot read symbols of " + report.path + ": the file is gone";
    return;
  }
  ModuleFile file{.fd = fd.get(), .path = report.path, .build_id = report.build_id};
  if (file.path.ends_with(kDeletedSuffix))
    file.path.resize(file.path.size() - kDeletedSuffix.size());
  auto symbolizer = ElfSymbolizer::Open(file, debug_path);
  if (!symbolizer.ok()) {
    report.reason = symbolizer.status().code() == StatusCode::kNotFound
                        ? NoSymbolsReason::kBuildIdMismatch
                        : NoSymbolsReason::kUnreadable;
    report.error = symbolizer.status().message();
    return;
  }
  report.has_debug_info = symbolizer.value().has_debug_info();
  std::vector<uint64_t> rel_pcs;
  rel_pcs.reserve(module.frames.size());
  for (const FrameId id : module.frames)
    rel_pcs.push_back(profile.frames[id].rel_pc);
  auto lines = symbolizer.value().Symbolize(rel_pcs);
  for (size_t i = 0; i < lines.size(); ++i) {
    report.unnamed_frames -= lines[i].empty() ? 0u : 1u;
    profile.frames[module.frames[i]].lines = std::move(lines[i]);
  }
  if (report.unnamed_frames != 0)
    report.reason = NoSymbolsReason::kNoSymbols;
}

}  // namespace

SymbolizeReport SymbolizeProfile(TargetProfile& profile,
                                 const ModuleOpener& open_module,
                                 const std::string& debug_path) {
  SymbolizeReport report;
  for (ModuleFrames& module : GroupByModule(profile)) {
    if (!module.frames.empty())
      SymbolizeModule(profile, module, open_module, debug_path);
    if (module.report.frames != 0)
      report.modules.push_back(std::move(module.report));
  }
  return report;
}

}  // namespace heapprofd
