#include "cli/results/unnamed_advice.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/files/foreign_file.h"
#include "base/format.h"
#include "base/scoped_fd.h"
#include "base/text.h"
#include "cli/results/debian_package.h"
#include "cli/results/top_list.h"
#include "symbolize/elf_identity.h"

namespace heapprofd {
namespace {

constexpr double kWorthALine = 0.01;

bool HasModule(const TargetProfile& profile, std::string_view name) {
  return std::any_of(
      profile.mappings.begin(), profile.mappings.end(),
      [&](const Mapping& mapping) { return FileName(mapping.path).starts_with(name); });
}

// That compile code and write names for it when they are told to.
enum class Runtime : uint8_t { kNone, kJava, kNode };

Runtime RuntimeOf(const TargetProfile& profile) {
  if (HasModule(profile, "libjvm.so"))
    return Runtime::kJava;
  return HasModule(profile, "libnode.so") ||
                 FileName(profile.process.executable).starts_with("node")
             ? Runtime::kNode
             : Runtime::kNone;
}

bool IsCodeOfRuntime(const TargetProfile& profile, const ModuleSymbols& module) {
  return module.path.empty() && RuntimeOf(profile) != Runtime::kNone &&
         module.mappings != std::vector<MappingId>{kNoId};
}

// By module, the share of the allocated bytes whose holder, as tables show it, is in it
// and has no name.
class UnnamedShares {
 public:
  explicit UnnamedShares(const ProcessResult& process)
      : profile_(*process.profile), names_(profile_) {
    for (const ModuleSymbols& module : process.symbols.modules) {
      for (const MappingId mapping : module.mappings)
        by_mapping_.emplace(mapping, modules_.size());
      modules_.push_back({.is_of_runtime = IsCodeOfRuntime(profile_, module)});
      has_runtime_ |= modules_.back().is_of_runtime;
    }
  }

  std::vector<double> Of(const HeapDump& dump) {
    double total = 0;
    for (const auto& [callsite, totals] : dump.callsites) {
      total += totals.allocated.bytes;
      AddStack(callsite, totals.allocated.bytes);
    }
    std::vector<double> shares;
    for (const Module& module : modules_)
      shares.push_back(total > 0 ? module.unnamed / total : 0);
    return shares;
  }

 private:
  struct Module {
    bool is_of_runtime = false;
    double unnamed = 0;
    CallsiteId last_stack = kNoId;  // that was added
  };

  // What a runtime's functions allocate is allocated by native ones for them: all frames
  // of a stack count for it.
  void AddStack(CallsiteId callsite, double bytes) {
    if (const std::vector<StackNames::Position> shown = names_.Shown(callsite);
        !shown.empty())
      AddFrame(shown[0].frame, callsite, bytes, /*is_holder=*/true);
    if (!has_runtime_)
      return;
    for (CallsiteId at = callsite; at != kNoId; at = profile_.callsites[at].parent)
      AddFrame(profile_.callsites[at].frame, callsite, bytes, /*is_holder=*/false);
  }

  // Each stack once.
  void AddFrame(FrameId id, CallsiteId stack, double bytes, bool is_holder) {
    const Frame& frame = profile_.frames[id];
    const auto found =
        frame.lines.empty() ? by_mapping_.find(frame.mapping) : by_mapping_.end();
    if (found == by_mapping_.end())
      return;
    Module& module = modules_[found->second];
    if ((is_holder || module.is_of_runtime) &&
        std::exchange(module.last_stack, stack) != stack)
      module.unnamed += bytes;
  }

  const TargetProfile& profile_;
  StackNames names_;
  std::unordered_map<MappingId, size_t> by_mapping_;  // kNoId: what is in no mapping
  std::vector<Module> modules_;
  bool has_runtime_ = false;
};

// The path may mean another file here than in the process's own root directory.
bool IsFileOfThisMachine(const ModuleSymbols& module) {
  if (module.build_id.empty())
    return false;
  const ScopedFd fd = OpenForeignPath(module.path);
  if (!fd.valid())
    return false;
  const std::optional<ElfIdentity> identity = IdentifyElf(fd.get());
  return identity && identity->build_id == module.build_id;
}

// libc6's are older than the rule.
std::string DebugPackage(const std::string& package) {
  return package == "libc6" ? "libc6-dbg" : package + "-dbgsym";
}

// "=https://...", where we know one.
std::string DebuginfodServer() {
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line == "ID=debian")
      return "=https://debuginfod.debian.net";
  }
  return "";
}

constexpr char kStripped[] =
    "it has no symbols for them; build it without stripping, or name a directory with "
    "its symbol file in PERFETTO_BINARY_PATH";

std::string AdviceForStripped(const ModuleSymbols& module) {
  const char* servers = getenv("DEBUGINFOD_URLS");
  const bool has_servers = servers != nullptr && *servers != 0;
  const std::optional<std::string> package =
      IsFileOfThisMachine(module) ? DebianPackageOf(module.path) : std::nullopt;
  if (package)
    return std::string("it has no symbols for them; ") +
           (has_servers ? "" : "set DEBUGINFOD_URLS" + DebuginfodServer() + " or ") +
           "install " + DebugPackage(*package);
  return kStripped;
}

std::string Advice(const ModuleSymbols& module) {
  const std::string missing =
      "; put the file that ran into a directory of PERFETTO_BINARY_PATH";
  switch (module.reason) {
    case NoSymbolsReason::kNone:
    case NoSymbolsReason::kNoSymbols:
      return module.path.empty() ? module.error : AdviceForStripped(module);
    case NoSymbolsReason::kNotFound:
      return "the file is gone" + missing;
    case NoSymbolsReason::kBuildIdMismatch:
      return "another build of it is in its place" + missing;
    case NoSymbolsReason::kUnreadable:
    case NoSymbolsReason::kWorkerDied:
    case NoSymbolsReason::kCancelled:
      break;
  }
  return module.error;
}

}  // namespace

std::optional<std::string> UnnamedAdvice(const ProcessResult& process) {
  if (process.profile->heaps.empty())
    return std::nullopt;
  const std::vector<ModuleSymbols>& modules = process.symbols.modules;
  const std::vector<double> shares = UnnamedShares(process).Of(process.profile->heaps[0]);
  const ModuleSymbols* worst = nullptr;
  double worst_share = kWorthALine;
  for (size_t i = 0; i < modules.size(); ++i) {
    if (modules[i].unnamed_frames != 0 && shares[i] > worst_share) {
      worst_share = shares[i];
      worst = &modules[i];
    }
  }
  if (worst == nullptr)
    return std::nullopt;
  if (IsCodeOfRuntime(*process.profile, *worst))
    return FormatShare(worst_share, 1) +
           " of allocated bytes pass through code made at run time, without a name; " +
           worst->error;
  return FormatShare(worst_share, 1) +
         " of allocated bytes belong to functions without a name in " +
         (worst->path.empty() ? "memory without a file"
                              : std::string(FileName(worst->path))) +
         ": " + Advice(*worst);
}

std::string FileAdvice::Of(const UnnamedModule& module) {
  constexpr size_t kMostLookedUp = 16;  // a file may let us wait for seconds
  const ModuleSymbols symbols = {.path = module.path,
                                 .build_id = module.build_id,
                                 .reason = module.reason,
                                 .error = module.error};
  const bool is_stripped = module.reason == NoSymbolsReason::kNone ||
                           module.reason == NoSymbolsReason::kNoSymbols;
  if (!is_stripped || module.path.empty())
    return Advice(symbols);
  if (stripped_.size() == kMostLookedUp &&
      !stripped_.contains({module.path, module.build_id}))
    return kStripped;
  std::string& text = stripped_[{module.path, module.build_id}];
  if (text.empty())
    text = Advice(symbols);
  return text;
}

// Only a compiler whose runtime is there is blamed.
ModuleSymbols ModuleOfJitCode(const TargetProfile& profile, const JitReport& jit) {
  ModuleSymbols module;
  module.mappings = jit.mappings;
  module.frames = jit.frames;
  module.unnamed_frames = jit.unnamed_frames;
  if (!jit.error.empty()) {
    module.reason = NoSymbolsReason::kWorkerDied;
    module.error = "cannot read what its compiler has left: " + jit.error;
    return module;
  }
  module.reason = NoSymbolsReason::kNoSymbols;
  const bool is_mapped = std::any_of(jit.mappings.begin(), jit.mappings.end(),
                                     [](MappingId id) { return id != kNoId; });
  const Runtime runtime = is_mapped ? RuntimeOf(profile) : Runtime::kNone;
  if (runtime == Runtime::kJava)
    module.error =
        "run java with -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
        "-XX:+DumpPerfMapAtExit";
  else if (runtime == Runtime::kNode)
    module.error = "run node with --perf-basic-prof";
  else if (is_mapped)
    module.error = "nothing is known about it; a perf map (/tmp/perf-" +
                   std::to_string(profile.process.pid) + ".map) would name them";
  else if (profile.quality.postponed_frames > 0)
    module.error = "what was mapped could not be read again in time";
  else
    module.error = "the addresses are in nothing that was known to be mapped";
  return module;
}

}  // namespace heapprofd
