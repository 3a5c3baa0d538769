#include "record/session_dumper.h"

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "record/allocator_question.h"

namespace heapprofd {
namespace {

constexpr uint64_t kDrainNs = 5'000'000;  // rings wait no longer than this in a dump
constexpr uint64_t kDrainAtMostNs = 2'000'000'000;  // for the dump of one process
constexpr uint64_t kIdleAtMostNs = 5'000'000'000;   // for looks at all processes

// Their last dumps are still to be written, and of a moment before this one.
std::unordered_set<const Target*> EndedTargets(const Session& session) {
  std::unordered_set<const Target*> ended;
  for (const std::unique_ptr<Target>& target : session.targets().all()) {
    if (target->profile().end != TargetEnd::kRunning)
      ended.insert(target.get());
  }
  return ended;
}

}  // namespace

void SessionDumper::Dump(Session& session, const std::string& label) {
  session.Serve();  // processes that have ended are not dumped as if they lived
  const std::unordered_set<const Target*> ended = EndedTargets(session);
  AskAllocatorsOf(session);
  BeginLooks(session);
  const uint64_t idle_end_ns = MonotonicNs() + kIdleAtMostNs;
  for (size_t i = 0; i < session.targets().all().size(); ++i) {
    Target& target = *session.targets().all()[i];
    if (trace_->IsComplete(target))
      continue;
    // Those that wait for space in their rings must not wait for the dumps of all others.
    if (MonotonicNs() - served_ns_ > kDrainNs)
      ServeOthers(session);
    if (look_turns_.Has(i) && !LookForIdle(session, target, idle_end_ns))
      look_turns_.Miss(i);
    DrainForDump(session, target);
    if (target.is_recording()) {
      target.recorder().UpdateDump();
      target.recorder().ReadMemory();
    }
    trace_->WriteDump(session, target, ended.contains(&target) ? "" : label);
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

void SessionDumper::BeginLooks(const Session& session) {
  if (!session.config().idle_allocations)
    return;
  std::vector<pid_t> order;
  for (const std::unique_ptr<Target>& target : session.targets().all())
    order.push_back(target->profile().process.pid);
  look_turns_.Begin(std::move(order));
}

// Those for which there is no time have what was found before.
bool SessionDumper::LookForIdle(Session& session, Target& target, uint64_t end_ns) {
  while (target.is_recording() && target.recorder().idle().memory() != nullptr) {
    IdleLooks& idle = target.recorder().idle();
    if (MonotonicNs() >= end_ns) {
      idle.Drop();
      return false;
    }
    if (idle.Look(IdleMemory::Occasion::kDump, kDrainNs))
      return true;
    ServeOthers(session);
  }
  return true;
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
