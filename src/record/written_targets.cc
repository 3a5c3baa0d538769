#include "record/written_targets.h"

#include <algorithm>

#include "engine/process_info.h"
#include "record/no_calls.h"

namespace heapprofd {
namespace {

constexpr char kFilteredName[] = "FILTERED";
constexpr char kRequestedLabel[] = "requested by the program";

bool HasPrefix(const std::vector<std::string>& prefixes, const std::string& path) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return path.starts_with(prefix); });
}

// Why a process has no samples; "" when it has.
std::string ReasonOf(const TargetProfile& profile) {
  if (profile.rejected_concurrent)
    return profile.reason;
  uint64_t calls = profile.forked.alloc_calls;
  for (const HeapDump& dump : profile.heaps) {
    if (!dump.callsites.empty())
      return "";
    calls += dump.exact_alloc_calls;
  }
  if (profile.heaps.empty())
    return "none of the heaps asked for is in this process; --all-heaps records and "
           "names those it has";
  if (!profile.hooks_malloc)
    return "malloc cannot be seen in this process, only heaps that it reports; use "
           "--all-heaps, or start it with LD_PRELOAD";
  if (profile.has_own_malloc)
    return OwnMallocWords(profile.process.executable);
  if (calls == 0)
    return NoCallsWords(profile.from_startup, profile.unhooked);
  return profile.from_startup
             ? "none of its allocations was sampled; use a smaller --interval (1 records "
               "everything)"
             : "none of its allocations was sampled since it was attached to; record it "
               "for longer, or use a smaller --interval (1 records everything)";
}

}  // namespace

Status WrittenTargets::Write(Session& session, Target& target, const std::string& label) {
  HPD_TRY(WriteRequested(session, target));
  State& state = states_[&target];
  const TargetProfile& profile = target.profile();
  target.set_reason(ReasonOf(profile));
  FilterSymbols(session.config(), target);
  HPD_TRY(Describe(target, &state));
  if (profile.memory.rss_kib != 0)
    HPD_TRY(writer_->WriteProcessMemory(profile));
  const DumpFlags flags{
      .disconnected = profile.end != TargetEnd::kRunning,
      .buffer_overran = profile.quality.lost_records > 0,
      .buffer_corrupted = profile.quality.corrupt_records > 0,
      .mode = session.config().dumps.at_max ? DumpMode::kPeak : DumpMode::kCumulative,
      .label = label};
  return writer_->WriteDump(profile, state.id, flags);
}

Status WrittenTargets::Describe(const Target& target, State* state) {
  if (state->is_described)
    return {};
  state->is_described = true;
  state->id = next_id_++;
  return writer_->WriteProcessTree({&target.profile().process, 1});
}

Status WrittenTargets::WriteRequested(Session& session, Target& target) {
  const TargetProfile& profile = target.profile();
  const std::vector<std::vector<HeapDump>> dumps = target.requests().TakeDumps();
  if (dumps.empty())
    return {};
  State& state = states_[&target];
  FilterSymbols(session.config(), target);
  HPD_TRY(Describe(target, &state));
  for (const std::vector<HeapDump>& heaps : dumps) {
    if (heaps.empty())
      continue;
    HPD_TRY(writer_->WriteHeaps(profile, heaps, state.id,
                                DumpFlags{.label = kRequestedLabel}));
  }
  return writer_->Finish();
}

Status WrittenTargets::WriteRejected(Session& session) {
  for (const std::unique_ptr<TargetProfile>& profile : session.missed().taken()) {
    const auto [entry, is_new] = rejected_ids_.try_emplace(profile.get(), next_id_);
    if (!is_new)
      continue;
    ++next_id_;
    HPD_TRY(writer_->WriteProcessTree({&profile->process, 1}));
    HPD_TRY(writer_->WriteDump(*profile, entry->second, DumpFlags()));
  }
  return {};
}

Status WrittenTargets::WriteAbsent(const Session& session, uint64_t started_ns) {
  for (const pid_t pid : session.config().targets.pids) {
    const auto is_pid = [pid](const auto& target) { return target->pid() == pid; };
    const auto is_rejected = [pid](const std::unique_ptr<TargetProfile>& profile) {
      return profile->process.pid == pid;
    };
    if (std::ranges::any_of(session.targets().all(), is_pid) ||
        std::ranges::any_of(session.missed().taken(), is_rejected))
      continue;
    TargetProfile absent;
    absent.process = DescribeProcess(pid);
    absent.process.start_ns = started_ns;
    absent.reason =
        "the process did not report: it is gone, belongs to another user, has not loaded "
        "the profiling library, has allocated nothing meanwhile, or is left out by "
        "no_running, no_startup or min_anonymous_memory_kb";
    HPD_TRY(writer_->WriteProcessTree({&absent.process, 1}));
    HPD_TRY(writer_->WriteDump(absent, next_id_++, DumpFlags()));
  }
  return {};
}

void WrittenTargets::FilterSymbols(const SessionConfig& config, Target& target) {
  if (config.skip_symbol_prefixes.empty())
    return;
  const CodeTable code = target.code();
  size_t& next = states_[&target].filtered_frames;
  for (; next < code.frames.size(); ++next) {
    Frame& frame = code.frames[next];
    if (frame.mapping != kNoId &&
        HasPrefix(config.skip_symbol_prefixes, code.mappings[frame.mapping].path)) {
      frame.lines = {{.function = kFilteredName,
                      .system_name = kFilteredName,
                      .file = "",
                      .line = 0}};
    }
  }
}

}  // namespace heapprofd
