#include "record/trace_recording.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/process_info.h"
#include "engine/target/target_text.h"
#include "record/allocator_question.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLimitsNs = 1'000'000'000;  // limits are looked at this often
constexpr uint64_t kDrainNs = 5'000'000;       // rings wait no longer than this in a dump
constexpr uint64_t kDrainAtMostNs = 2'000'000'000;  // for the dump of one process
constexpr size_t kMaxLabel = 256;                   // bytes, with the terminating zero

double OwnCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace

TraceRecording::TraceRecording(RecordingConfig config,
                               std::vector<std::unique_ptr<Session>> sessions,
                               TraceFile trace)
    : config_(std::move(config)),
      sessions_(std::move(sessions)),
      session_states_(sessions_.size()),
      writer_(std::move(trace)),
      written_(&writer_),
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
      Note(written_.WriteRequested(*sessions_[i], *target));
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
    if (written_.IsComplete(target))
      continue;
    // Those that wait for space in their rings must not wait for the dumps of all others.
    if (MonotonicNs() - drained_ns_ > kDrainNs)
      ServeOthers(session);
    DrainForDump(session, target);
    if (target.is_recording()) {
      target.recorder().UpdateDump();
      target.recorder().ReadMemory();
    }
    Note(written_.Write(session, target, label));
    if (!target.is_recording())
      written_.SetComplete(target);
  }
  Note(written_.WriteRejected(session));
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
      written_.FilterSymbols(session->config(), *target);
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
      if (!written_.IsComplete(*target))
        Note(written_.Write(*session, *target, ""));
    }
    Note(written_.WriteRejected(*session));
    Note(written_.WriteAbsent(*session, started_ns_));
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
  written_ = WrittenTargets(&writer_);
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
