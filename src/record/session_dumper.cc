#include "record/session_dumper.h"

#include <memory>

#include "base/clock.h"
#include "record/allocator_question.h"

namespace heapprofd {
namespace {

constexpr uint64_t kDrainNs = 5'000'000;  // rings wait no longer than this in a dump
constexpr uint64_t kDrainAtMostNs = 2'000'000'000;  // for the dump of one process
constexpr uint64_t kIdleAtMostNs = 5'000'000'000;   // for looks at all processes

}  // namespace

void SessionDumper::Dump(Session& session, const std::string& label) {
  session.Serve();  // processes that have ended are not dumped as if they lived
  AskAllocatorsOf(session);
  const uint64_t idle_end_ns = MonotonicNs() + kIdleAtMostNs;
  for (size_t i = 0; i < session.targets().all().size(); ++i) {
    Target& target = *session.targets().all()[i];
    if (trace_->IsComplete(target))
      continue;
    // Those that wait for space in their rings must not wait for the dumps of all others.
    if (MonotonicNs() - served_ns_ > kDrainNs)
      ServeOthers(session);
    LookForIdle(session, target, idle_end_ns);
    DrainForDump(session, target);
    if (target.is_recording()) {
      target.recorder().UpdateDump();
      target.recorder().ReadMemory();
    }
    trace_->WriteDump(session, target, label);
  }
  trace_->EndDump(session);
}

void SessionDumper::LookAtLast(Session& session) {
  AskAllocatorsOf(session);
  for (const std::unique_ptr<Target>& target : session.targets().all()) {
    if (target->is_recording())
      target->recorder().ReadMemory();
  }
}

void SessionDumper::AskAllocatorsOf(Session& session) {
  if (session.config().ask_allocator)
    AskAllocators(session, [this, &session] { ServeOthers(session); });
}

// Those for which there is no time have what was found before.
void SessionDumper::LookForIdle(Session& session, Target& target, uint64_t end_ns) {
  while (target.is_recording() &&
         !target.recorder().idle().Look(IdleMemory::Occasion::kDump, kDrainNs)) {
    ServeOthers(session);
    if (MonotonicNs() >= end_ns && target.is_recording())
      return target.recorder().idle().Drop();
  }
}

// What the program has done before the dump belongs into it; the others go on meanwhile.
void SessionDumper::DrainForDump(Session& session, Target& target) {
  if (!target.is_recording())
    return;
  const uint64_t deadline = MonotonicNs() + kDrainAtMostNs;
  const uint64_t end = target.recorder().ring().RestEnd();
  while (target.is_recording() &&
         !target.recorder().DrainRest(end, /*writers_gone=*/false) &&
         MonotonicNs() < deadline)
    ServeOthers(session);
}

void SessionDumper::ServeOthers(Session& session) {
  if (between_)
    between_();
  else
    session.Serve();
  served_ns_ = MonotonicNs();
}

}  // namespace heapprofd
