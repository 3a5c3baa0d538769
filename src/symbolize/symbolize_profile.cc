#include "symbolize/symbolize_profile.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "symbolize/disk_cache.h"
#include "symbolize/llvm_symbolizer.h"
#include "symbolize/module_symbolizer.h"
#include "symbolize/worker_pool.h"

namespace heapprofd {
namespace {

// What the kernel adds to the path of a file that has been removed or replaced since.
constexpr std::string_view kDeletedSuffix = " (deleted)";

// Addresses for which a second worker is worth its start.
constexpr size_t kMinSplit = 2000;

bool HasFile(const Mapping& mapping) {
  return mapping.path.starts_with('/') && !mapping.path.starts_with("//");  // "//anon"
}

std::string WithoutDeleted(std::string path) {
  if (path.ends_with(kDeletedSuffix))
    path.resize(path.size() - kDeletedSuffix.size());
  return path;
}

// One module of one profile, and where its answers go.
struct ModuleFrames {
  size_t profile;
  ModuleSymbols report;
  std::vector<FrameId> frames;  // without lines
};

// One file, of all profiles: its addresses are looked up together.
struct Job {
  ModuleRequest request;
  std::vector<std::pair<size_t, FrameId>> frames;  // profile and frame of each address
  std::vector<size_t> modules;                     // that wait for it
  bool is_done = false;
};

void GroupByModule(const CodeTable& code,
                   size_t profile_index,
                   std::vector<ModuleFrames>& modules) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> by_file;
  std::vector<size_t> of_mapping(code.mappings.size(), SIZE_MAX);
  for (MappingId id = 0; id < code.mappings.size(); ++id) {
    const Mapping& mapping = code.mappings[id];
    if (!HasFile(mapping))
      continue;
    const auto [entry, is_new] =
        by_file.try_emplace({mapping.path, mapping.build_id}, modules.size());
    if (is_new) {
      modules.push_back({.profile = profile_index, .report = {}, .frames = {}});
      modules.back().report.path = mapping.path;
      modules.back().report.build_id = mapping.build_id;
    }
    modules[entry->second].report.mappings.push_back(id);
    of_mapping[id] = entry->second;
  }
  for (FrameId id = 0; id < code.frames.size(); ++id) {
    const Frame& frame = code.frames[id];
    if (frame.mapping >= of_mapping.size() || of_mapping[frame.mapping] == SIZE_MAX)
      continue;
    ModuleFrames& module = modules[of_mapping[frame.mapping]];
    ++module.report.frames;
    if (frame.lines.empty())
      module.frames.push_back(id);
  }
}

class Run {
 public:
  Run(std::span<const ProfileToSymbolize> profiles, const SymbolizeOptions& options)
      : profiles_(profiles),
        options_(options),
        finder_(options.binary_path, options.lookup, DiskCache(options.cache_directory)) {
  }

  std::vector<SymbolizeReport> Do() {
    for (size_t i = 0; i < profiles_.size(); ++i)
      GroupByModule(profiles_[i].code, i, modules_);
    MakeJobs();
    if (!jobs_.empty())
      finder_.PrepareIndex();
    ModuleSymbolizer symbolizer(options_, &finder_);
    const bool is_complete = RunInWorkers(
        jobs_.size(),
        [&](size_t job) { return symbolizer.Symbolize(jobs_[job].request).Encode(); },
        [&](size_t job, Result<std::string> result) {
          Take(jobs_[job], std::move(result));
        },
        {.cancel_fd = options_.cancel_fd,
         .rights = WorkerRights::kToOpen,
         .on_progress = [this](size_t done) { TellProgress(done); }});
    if (!is_complete)
      GiveUpOnTheRest();
    std::vector<SymbolizeReport> reports(profiles_.size());
    for (ModuleFrames& module : modules_) {
      if (module.report.unnamed_frames == 0) {  // those without were another profile's
        module.report.reason = NoSymbolsReason::kNone;
        module.report.error.clear();
      }
      if (module.report.frames != 0)
        reports[module.profile].modules.push_back(std::move(module.report));
    }
    return reports;
  }

 private:
  void MakeJobs() {
    // The same path and build id in two processes is the same file; a path alone may be
    // two in different mount namespaces.
    std::map<std::tuple<std::string, std::string, size_t>, size_t> by_file;
    for (size_t i = 0; i < modules_.size(); ++i) {
      ModuleFrames& module = modules_[i];
      module.report.unnamed_frames = module.frames.size();
      if (module.frames.empty())
        continue;
      const std::string path = WithoutDeleted(module.report.path);
      const auto [entry, is_new] =
          by_file.try_emplace({path, module.report.build_id,
                               module.report.build_id.empty() ? module.profile : 0},
                              jobs_.size());
      if (is_new) {
        jobs_.emplace_back();
        jobs_.back().request.path = path;
        jobs_.back().request.build_id = module.report.build_id;
      }
      AddToJob(i, jobs_[entry->second]);
    }
    SplitLargeJobs();
    // The longest first, so that the workers end together.
    std::ranges::stable_sort(jobs_, std::greater<>(),
                             [](const Job& job) { return job.frames.size(); });
  }

  // Addresses in a job that keeps the others waiting: clearly more than a worker's share.
  size_t LargeJob(size_t workers) const {
    size_t sum = 0;
    for (const Job& job : jobs_)
      sum += job.frames.size();
    return std::max(kMinSplit, sum / workers * 3 / 2);
  }

  // A program is often one large file. Each part has the addresses of one range, so that
  // the parts have few compile units in common; but each reads all symbols of the file.
  void SplitLargeJobs() {
    const size_t parts = WorkersByDefault();
    const size_t large = LargeJob(parts);
    const size_t whole_jobs = jobs_.size();
    for (size_t i = 0; i < whole_jobs; ++i) {
      const size_t count = jobs_[i].frames.size();
      if (parts < 2 || count < large)
        continue;
      std::vector<size_t> order(count);
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::sort(order, {},
                        [&](size_t at) { return jobs_[i].request.addresses[at].rel_pc; });
      const Job whole = std::move(jobs_[i]);
      for (size_t part = 0; part < parts; ++part) {
        Job job;
        job.request.path = whole.request.path;
        job.request.build_id = whole.request.build_id;
        job.request.open = whole.request.open;
        job.modules = whole.modules;
        for (size_t at = part * count / parts; at < (part + 1) * count / parts; ++at) {
          job.request.addresses.push_back(whole.request.addresses[order[at]]);
          job.frames.push_back(whole.frames[order[at]]);
        }
        if (part == 0)
          jobs_[i] = std::move(job);
        else
          jobs_.push_back(std::move(job));
      }
    }
  }

  void AddToJob(size_t module_index, Job& job) {
    const ModuleFrames& module = modules_[module_index];
    const ProfileToSymbolize& input = profiles_[module.profile];
    job.modules.push_back(module_index);
    if (input.open_module) {
      job.request.open = [&input, &module, earlier = std::move(job.request.open)] {
        if (earlier) {
          if (ScopedFd fd = earlier(); fd.valid())
            return fd;
        }
        return input.open_module(input.code.mappings[module.report.mappings.front()]);
      };
    }
    for (const FrameId id : module.frames) {
      const Frame& frame = input.code.frames[id];
      const Mapping& mapping = input.code.mappings[frame.mapping];
      job.frames.emplace_back(module.profile, id);
      job.request.addresses.push_back(
          {.rel_pc = frame.rel_pc,
           .image_offset = mapping.exact_offset - mapping.start_offset,
           .load_bias = mapping.load_bias});
    }
  }

  void TellProgress(size_t done) const {
    if (options_.on_progress)
      options_.on_progress(static_cast<double>(done) / static_cast<double>(jobs_.size()));
  }

  void GiveUpOnTheRest() {
    ModuleAnswer nothing;
    nothing.reason = NoSymbolsReason::kCancelled;
    nothing.error =
        "the search for names was interrupted; traceconv symbolize gives the trace those "
        "that are missing";
    for (Job& job : jobs_) {
      if (!job.is_done)
        Apply(job, nothing);
    }
  }

  void Take(Job& job, Result<std::string> result) {
    std::optional<ModuleAnswer> answer;
    std::string cause = "its worker returned nonsense";
    if (result.ok())
      answer = ModuleAnswer::Decode(std::move(result).value());
    else
      cause = result.status().message();
    if (!answer)
      answer = AnswerOfDeadWorker(job.request.path, cause);
    Apply(job, *answer);
    job.is_done = true;
  }

  void Apply(const Job& job, const ModuleAnswer& answer) {
    std::vector<uint64_t> named(profiles_.size());
    for (size_t i = 0; i < job.frames.size(); ++i) {
      const auto [profile, frame] = job.frames[i];
      const auto lines = answer.lines.Find(
          i < answer.keys.size() ? answer.keys[i] : job.request.addresses[i].rel_pc);
      if (!lines || lines->empty())
        continue;
      profiles_[profile].code.frames[frame].lines = answer.lines.ToSourceLines(*lines);
      ++named[profile];
    }
    for (const size_t index : job.modules) {
      ModuleSymbols& report = modules_[index].report;
      report.unnamed_frames -= named[modules_[index].profile];
      report.has_debug_info |= answer.has_debug_info;
      report.from_cache |= answer.from_cache;
      if (answer.reason == NoSymbolsReason::kNone)
        continue;
      report.reason = answer.reason;
      report.error = answer.error;
    }
  }

  std::span<const ProfileToSymbolize> profiles_;
  const SymbolizeOptions& options_;
  SymbolFinder finder_;
  std::vector<ModuleFrames> modules_;
  std::vector<Job> jobs_;
};

std::vector<std::string> SplitPath(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(':'), text.size());
    if (end > 0)
      parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

Result<SymbolizeOptions> SymbolizeOptions::FromEnvironment() {
  SymbolizeOptions options;
  options.binary_path = SplitPath(Variable("PERFETTO_BINARY_PATH"));
  options.cache_directory = DiskCache::StandardDirectory();
  const std::string mode = Variable("PERFETTO_SYMBOLIZER_MODE");
  if (mode == "find")
    options.lookup = LookupMode::kFind;
  else if (mode == "index")
    options.lookup = LookupMode::kIndex;
  else if (!mode.empty())
    return Status(StatusCode::kInvalidArgument,
                  "cannot use PERFETTO_SYMBOLIZER_MODE=" + mode +
                      ": it is neither find (by path) nor index (by build id)");
  const std::string backend = Variable("HEAPPROFD_SYMBOLIZER");
  if (backend == "llvm-symbolizer") {
    options.backend = SymbolBackend::kLlvmSymbolizer;
    HPD_TRY_ASSIGN(options.llvm_symbolizer, FindLlvmSymbolizer());
  } else if (!backend.empty() && backend != "libdw") {
    return Status(StatusCode::kInvalidArgument,
                  "cannot use HEAPPROFD_SYMBOLIZER=" + backend +
                      ": it is neither libdw nor llvm-symbolizer");
  }
  return options;
}

std::vector<SymbolizeReport> SymbolizeProfiles(
    std::span<const ProfileToSymbolize> profiles, const SymbolizeOptions& options) {
  return Run(profiles, options).Do();
}

}  // namespace heapprofd
