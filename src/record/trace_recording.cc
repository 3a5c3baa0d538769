#include "record/trace_recording.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/process_info.h"
#include "engine/target/target_text.h"
#include "record/allocator_question.h"
#include "record/no_calls.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLimitsNs = 1'000'000'000;  // limits are looked at this often
constexpr uint64_t kDrainNs = 5'000'000;       // rings wait no longer than this in a dump
constexpr uint64_t kDrainAtMostNs = 2'000'000'000;  // for the dump of one process
constexpr size_t kMaxLabel = 256;                   // bytes, with the terminating zero
constexpr char kFilteredName[] = "FILTERED";
constexpr char kRequestedLabel[] = "requested by the program";

double OwnCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

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
  if (calls == 0)
    return profile.from_startup ? kNoCallsSeen : kNoCallsMeanwhile;
  return profile.from_startup
             ? "none of its allocations was sampled; use a smaller --interval (1 records "
               "everything)"
             : "none of its allocations was sampled since it was attached to; record it "
               "for longer, or use a smaller --interval (1 records everything)";
}

}  // namespace

TraceRecording::TraceRecording(RecordingConfig config,
                               std::vector<std::unique_ptr<Session>> sessions,
                               TraceFile trace)
    : config_(std::move(config)),
      sessions_(std::move(sessions)),
      session_states_(sessions_.size()),
      writer_(std::move(trace)),
      other_sources_(&writer_),
      stream_(&writer_) {
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (session->config().stream_allocations)
      session->live().set_events(&stream_);
  }
}

void TraceRecording::set_between_dumps(std::function<void()> callback) {
  for (const std::unique_ptr<Session>& session : sessions_)
    session->set_between(callback);
  between_dumps_ = std::move(callback);
}

Status TraceRecording::Begin() {
  started_ns_ = MonotonicNs();
  limits_checked_ns_ = started_ns_;
  for (size_t i = 0; i < sessions_.size(); ++i) {
    const DumpSchedule& schedule = sessions_[i]->config().dumps;
    if (schedule.interval_ms != 0)
      session_states_[i].next_dump_ns = started_ns_ + schedule.phase_ms * kNsPerMs;
    session_states_[i].cpu_at_start = OwnCpuSeconds();
  }
  HPD_TRY(writer_.WriteHeader(SerializeTraceConfig(config_)));
  other_sources_.Begin(config_.rest);
  return writer_.Finish();
}

int TraceRecording::Serve(int max_ms, uint64_t turn_end_ns) {
  int wait_ms = max_ms;
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (!session->is_stopped())
      wait_ms = std::min(wait_ms, session->Serve(turn_end_ns));
  }
  ServeSchedule();
  return std::min(wait_ms, MillisecondsToNext(max_ms));
}

bool TraceRecording::IsDue(size_t session, uint64_t now) const {
  const uint64_t due = session_states_[session].next_dump_ns;
  return due != 0 && due <= now && !sessions_[session]->is_stopped();
}

void TraceRecording::ServeSchedule() {
  if (cause_ != StopCause::kNone)
    return;
  const uint64_t now = MonotonicNs();
  for (size_t i = 0; i < sessions_.size(); ++i) {
    for (const std::unique_ptr<Target>& target : sessions_[i]->targets())
      Note(WriteRequestedDumps(*sessions_[i], *target));
    if (!IsDue(i, now))
      continue;
    DumpSession(*sessions_[i], "");
    ++dump_rounds_;
    // From the schedule, not from now: dumps that take long must not make the next ones
    // late. Those that were missed altogether are left out.
    const uint64_t period = sessions_[i]->config().dumps.interval_ms * kNsPerMs;
    const uint64_t after = MonotonicNs();
    uint64_t& next = session_states_[i].next_dump_ns;
    next += period * (1 + (after > next + period ? (after - next) / period - 1 : 0));
  }
  Note(other_sources_.Serve(now));
  CheckLimits(now);
}

int TraceRecording::MillisecondsToNext(int max_ms) const {
  const uint64_t now = MonotonicNs();
  uint64_t next =
      std::min(now + static_cast<uint64_t>(max_ms) * kNsPerMs, other_sources_.next_ns());
  if (config_.duration_ms != 0)
    next = std::min(next, started_ns_ + config_.duration_ms * kNsPerMs);
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (session_states_[i].next_dump_ns != 0 && !sessions_[i]->is_stopped())
      next = std::min(next, session_states_[i].next_dump_ns);
  }
  return next > now ? static_cast<int>((next - now + kNsPerMs - 1) / kNsPerMs) : 0;
}

void TraceRecording::CheckLimits(uint64_t now) {
  if (config_.duration_ms != 0 && now >= started_ns_ + config_.duration_ms * kNsPerMs)
    return Stop(StopCause::kDuration);
  if (!status_.ok())
    return Stop(StopCause::kFailed);
  if (config_.max_file_bytes != 0 && writer_.size() >= config_.max_file_bytes)
    return Stop(StopCause::kFileFull);
  if (now - limits_checked_ns_ < kLimitsNs)
    return;
  limits_checked_ns_ = now;
  bool all_stopped = true;
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (!sessions_[i]->is_stopped() && HitsGuardrail(i))
      sessions_[i]->StopAtGuardrail();
    all_stopped &= sessions_[i]->is_stopped();
  }
  if (all_stopped)
    Stop(StopCause::kGuardrail);
}

bool TraceRecording::HitsGuardrail(size_t session) const {
  const Guardrails& limits = sessions_[session]->config().guardrails;
  if (limits.max_memory_kib != 0 && AnonymousKib(getpid()) > limits.max_memory_kib)
    return true;
  return limits.max_cpu_seconds != 0 &&
         OwnCpuSeconds() - session_states_[session].cpu_at_start >
             static_cast<double>(limits.max_cpu_seconds);
}

void TraceRecording::Dump(const std::string& label) {
  if (cause_ != StopCause::kNone)
    return;
  const std::string text =
      TextFromTarget(label.c_str(), std::min(label.size() + 1, kMaxLabel));
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (!session->is_stopped())
      DumpSession(*session, text);
  }
  ++dump_rounds_;
}

void TraceRecording::DumpSession(Session& session, const std::string& label) {
  session.Serve();  // processes that have ended are not dumped as if they lived
  if (session.config().ask_allocator)
    AskAllocators(session, [this, &session] { ServeOthers(session); });
  for (size_t i = 0; i < session.targets().size(); ++i) {
    Target& target = *session.targets()[i];
    if (target_states_[&target].is_complete)
      continue;
    // Those that wait for space in their rings must not wait for the dumps of all others.
    if (MonotonicNs() - drained_ns_ > kDrainNs)
      ServeOthers(session);
    DrainForDump(session, target);
    if (target.is_recording()) {
      target.recorder().UpdateDump();
      target.recorder().ReadMemory();
    }
    Note(WriteTarget(session, target, label));
    target_states_[&target].is_complete = !target.is_recording();
  }
  Note(WriteRejected(session));
  Note(stream_.Flush());
  Note(writer_.Finish());
}

// What the program has done before the dump belongs into it; the others go on meanwhile.
void TraceRecording::DrainForDump(Session& session, Target& target) {
  if (!target.is_recording())
    return;
  const uint64_t deadline = MonotonicNs() + kDrainAtMostNs;
  const uint64_t end = target.recorder().ring().RestEnd();
  while (target.is_recording() &&
         !target.recorder().DrainRest(end, /*writers_gone=*/false) &&
         MonotonicNs() < deadline)
    ServeOthers(session);
}

void TraceRecording::ServeOthers(Session& session) {
  if (between_dumps_)
    between_dumps_();
  else
    session.Serve();
  drained_ns_ = MonotonicNs();
}

Status TraceRecording::WriteTarget(Session& session,
                                   Target& target,
                                   const std::string& label) {
  HPD_TRY(WriteRequestedDumps(session, target));
  TargetState& state = target_states_[&target];
  const TargetProfile& profile = target.profile();
  target.set_reason(ReasonOf(profile));
  FilterSymbols(session.config(), target);
  HPD_TRY(Describe(target, &state));
  if (profile.memory.rss_kib != 0)
    HPD_TRY(writer_.WriteProcessMemory(profile));
  const DumpFlags flags{
      .disconnected = profile.end != TargetEnd::kRunning,
      .buffer_overran = profile.quality.lost_records > 0,
      .buffer_corrupted = profile.quality.corrupt_records > 0,
      .mode = session.config().dumps.at_max ? DumpMode::kPeak : DumpMode::kCumulative,
      .label = label};
  return writer_.WriteDump(profile, state.id, flags);
}

Status TraceRecording::Describe(const Target& target, TargetState* state) {
  if (state->is_described)
    return {};
  state->is_described = true;
  state->id = next_target_id_++;
  return writer_.WriteProcessTree({&target.profile().process, 1});
}

// What the program has asked for by heapprofd_dump_now, as dumps like all others.
Status TraceRecording::WriteRequestedDumps(Session& session, Target& target) {
  const TargetProfile& profile = target.profile();
  const std::vector<std::vector<HeapDump>> dumps = target.requests().TakeDumps();
  if (dumps.empty())
    return {};
  TargetState& state = target_states_[&target];
  FilterSymbols(session.config(), target);
  HPD_TRY(Describe(target, &state));
  for (const std::vector<HeapDump>& heaps : dumps) {
    if (heaps.empty())
      continue;
    HPD_TRY(writer_.WriteHeaps(profile, heaps, state.id,
                               DumpFlags{.label = kRequestedLabel}));
  }
  return writer_.Finish();
}

Status TraceRecording::WriteRejected(Session& session) {
  for (const std::unique_ptr<TargetProfile>& profile : session.missed().taken()) {
    const auto [entry, is_new] =
        rejected_ids_.try_emplace(profile.get(), next_target_id_);
    if (!is_new)
      continue;
    ++next_target_id_;
    HPD_TRY(writer_.WriteProcessTree({&profile->process, 1}));
    HPD_TRY(writer_.WriteDump(*profile, entry->second, DumpFlags()));
  }
  return {};
}

// Processes that were asked for by their ids and never came: said, not left out.
Status TraceRecording::WriteAbsent(const Session& session) {
  for (const pid_t pid : session.config().targets.pids) {
    const auto is_pid = [pid](const auto& target) { return target->pid() == pid; };
    const auto is_rejected = [pid](const std::unique_ptr<TargetProfile>& profile) {
      return profile->process.pid == pid;
    };
    if (std::ranges::any_of(session.targets(), is_pid) ||
        std::ranges::any_of(session.missed().taken(), is_rejected))
      continue;
    TargetProfile absent;
    absent.process = DescribeProcess(pid);
    absent.process.start_ns = started_ns_;
    absent.reason =
        "the process did not report: it is gone, belongs to another user, has not loaded "
        "the profiling library, has allocated nothing meanwhile, or is left out by "
        "no_running, no_startup or min_anonymous_memory_kb";
    HPD_TRY(writer_.WriteProcessTree({&absent.process, 1}));
    HPD_TRY(writer_.WriteDump(absent, next_target_id_++, DumpFlags()));
  }
  return {};
}

// Perfetto's skip_symbol_prefix: functions of these files are all called the same.
void TraceRecording::FilterSymbols(const SessionConfig& config, Target& target) {
  if (config.skip_symbol_prefixes.empty())
    return;
  const CodeTable code = target.code();
  size_t& next = target_states_[&target].filtered_frames;
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

void TraceRecording::Stop(StopCause cause) {
  if (cause_ != StopCause::kNone)
    return;
  cause_ = cause;
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (session->is_stopped())
      continue;
    if (session->config().ask_allocator)
      AskAllocators(*session, [this, &session] { ServeOthers(*session); });
    for (const std::unique_ptr<Target>& target : session->targets()) {
      if (target->is_recording())
        target->recorder().ReadMemory();
    }
    session->Stop();
  }
  stopped_ns_ = MonotonicNs();
  Note(other_sources_.End());
  for (const std::unique_ptr<Session>& session : sessions_) {
    for (const std::unique_ptr<Target>& target : session->targets())
      FilterSymbols(session->config(), *target);
  }
}

// Processes that ran before are attached to before the times of the schedule begin.
double TraceRecording::seconds() const {
  uint64_t begin_ns = started_ns_;
  for (const Target* target : targets())
    begin_ns = std::min(begin_ns, target->profile().process.start_ns);
  const uint64_t end_ns = stopped_ns_ != 0 ? stopped_ns_ : MonotonicNs();
  return static_cast<double>(end_ns - begin_ns) / 1e9;
}

Status TraceRecording::WriteRest(const RecordingEnd& end) {
  for (const std::unique_ptr<Session>& session : sessions_) {
    for (const std::unique_ptr<Target>& target : session->targets()) {
      if (!target_states_[target.get()].is_complete)
        Note(WriteTarget(*session, *target, ""));
    }
    Note(WriteRejected(*session));
    Note(WriteAbsent(*session));
  }
  Note(stream_.Flush());
  for (const Target* target : targets()) {
    Note(writer_.WriteUnsampledChildren(target->profile()));
    Note(writer_.WriteMarks(target->profile()));
  }
  const NamedModules named =
      targets().size() == 1 ? NamedModules::kAll : NamedModules::kFiles;
  for (const Target* target : targets())
    Note(writer_.WriteModuleSymbols(target->profile(), named));
  Note(writer_.WriteEnd(end));
  Note(writer_.Finish());
  return status_;
}

void TraceRecording::WriteAnew(const RecordingEnd& end) {
  const Status failure = std::exchange(status_, {});
  writer_ = TraceWriter(TraceFile::InMemory());
  target_states_.clear();
  rejected_ids_.clear();
  next_target_id_ = 0;
  Note(writer_.WriteHeader(SerializeTraceConfig(config_)));
  static_cast<void>(WriteRest(end));  // memory is no disk that could be full
  status_ = failure;
}

void TraceRecording::LeaveToParent() {
  for (const std::unique_ptr<Session>& session : sessions_)
    session->starts().LeaveToParent();
  other_sources_.LeaveToParent();
}

std::vector<Target*> TraceRecording::targets() const {
  std::vector<Target*> all;
  for (const std::unique_ptr<Session>& session : sessions_) {
    for (const std::unique_ptr<Target>& target : session->targets())
      all.push_back(target.get());
  }
  return all;
}

size_t TraceRecording::live_targets() const {
  size_t count = 0;
  for (const std::unique_ptr<Session>& session : sessions_)
    count += session->live().size();
  return count;
}

// The first error stands.
void TraceRecording::Note(Status status) {
  if (status_.ok())
    status_ = std::move(status);
}

}  // namespace heapprofd
