#include "record/trace_recording.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/own_malloc.h"
#include "engine/target/target_text.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLimitsNs = 1'000'000'000;  // limits are looked at this often
constexpr size_t kMaxLabel = 256;              // bytes, with the terminating zero

void NoteOwnMallocs(const std::vector<Target*>& targets) {
  OwnMallocs own_mallocs;
  for (Target* target : targets) {
    if (!target->is_attached() && target->profile().hooks_malloc &&
        own_mallocs.IsIn(*target))
      target->NoteOwnMalloc();
  }
}

}  // namespace

TraceRecording::TraceRecording(RecordingConfig config,
                               std::vector<std::unique_ptr<Session>> sessions,
                               TraceFile trace)
    : config_(std::move(config)),
      sessions_(std::move(sessions)),
      trace_(&config_, &sessions_, std::move(trace)),
      dumper_(&trace_),
      other_sources_(trace_.writer()) {}

void TraceRecording::set_between_dumps(std::function<void()> callback) {
  for (const std::unique_ptr<Session>& session : sessions_)
    session->set_between(callback);
  dumper_.set_between(std::move(callback));
}

Status TraceRecording::Begin() {
  started_ns_ = MonotonicNs();
  limits_checked_ns_ = started_ns_;
  for (const std::unique_ptr<Session>& session : sessions_) {
    const SessionConfig& config = session->config();
    duties_.push_back({.dumps = DumpTimes(config.dumps, started_ns_),
                       .guardrail = Guardrail(config.guardrails)});
  }
  HPD_TRY(trace_.WriteHead());
  other_sources_.Begin(config_.rest);
  return trace_.Flush();
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

void TraceRecording::ServeSchedule() {
  if (cause_ != StopCause::kNone)
    return;
  const uint64_t now = MonotonicNs();
  for (size_t i = 0; i < duties_.size(); ++i) {
    Session& session = *sessions_[i];
    trace_.WriteRequested(session);
    if (duties_[i].dumps.next_ns() > now || session.is_stopped())
      continue;
    dumper_.Dump(session, "");
    ++dump_rounds_;
    duties_[i].dumps.Advance(MonotonicNs());
  }
  trace_.Note(other_sources_.Serve(now));
  CheckLimits(now);
}

int TraceRecording::MillisecondsToNext(int max_ms) const {
  const uint64_t now = MonotonicNs();
  uint64_t next =
      std::min(now + static_cast<uint64_t>(max_ms) * kNsPerMs, other_sources_.next_ns());
  if (config_.duration_ms != 0)
    next = std::min(next, started_ns_ + config_.duration_ms * kNsPerMs);
  for (size_t i = 0; i < duties_.size(); ++i) {
    if (!sessions_[i]->is_stopped())
      next = std::min(next, duties_[i].dumps.next_ns());
  }
  return next > now ? static_cast<int>((next - now + kNsPerMs - 1) / kNsPerMs) : 0;
}

void TraceRecording::CheckLimits(uint64_t now) {
  if (config_.duration_ms != 0 && now >= started_ns_ + config_.duration_ms * kNsPerMs)
    return Stop(StopCause::kDuration);
  if (!trace_.status().ok())
    return Stop(StopCause::kFailed);
  if (config_.max_file_bytes != 0 && trace_.size() >= config_.max_file_bytes)
    return Stop(StopCause::kFileFull);
  if (now - limits_checked_ns_ < kLimitsNs)
    return;
  limits_checked_ns_ = now;
  bool all_stopped = true;
  for (size_t i = 0; i < duties_.size(); ++i) {
    if (!sessions_[i]->is_stopped() && duties_[i].guardrail.IsHit())
      sessions_[i]->StopAtGuardrail();
    all_stopped &= sessions_[i]->is_stopped();
  }
  if (all_stopped)
    Stop(StopCause::kGuardrail);
}

void TraceRecording::Dump(const std::string& label) {
  if (cause_ != StopCause::kNone)
    return;
  const std::string text =
      TextFromTarget(label.c_str(), std::min(label.size() + 1, kMaxLabel));
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (!session->is_stopped())
      dumper_.Dump(*session, text);
  }
  ++dump_rounds_;
}

void TraceRecording::Stop(StopCause cause) {
  if (cause_ != StopCause::kNone)
    return;
  cause_ = cause;
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (session->is_stopped())
      continue;
    dumper_.LookAtLast(*session);
    session->Stop();
  }
  stopped_ns_ = MonotonicNs();
  trace_.Note(other_sources_.End());
  trace_.FilterSymbols();
  NoteOwnMallocs(targets());
}

// Processes that ran before are attached to before the times of the schedule begin.
double TraceRecording::seconds() const {
  uint64_t begin_ns = started_ns_;
  for (const Target* target : targets())
    begin_ns = std::min(begin_ns, target->profile().process.start_ns);
  const uint64_t end_ns = stopped_ns_ != 0 ? stopped_ns_ : MonotonicNs();
  return static_cast<double>(end_ns - begin_ns) / 1e9;
}

void TraceRecording::LeaveToParent() {
  for (const std::unique_ptr<Session>& session : sessions_)
    session->starts().LeaveToParent();
  other_sources_.LeaveToParent();
}

size_t TraceRecording::live_targets() const {
  size_t count = 0;
  for (const std::unique_ptr<Session>& session : sessions_)
    count += session->targets().size();
  return count;
}

}  // namespace heapprofd
