#include "record/allocator_question.h"

#include "engine/tsc_clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 300'000'000;

}  // namespace

void AskAllocators(Session& session, const std::function<void()>& serve) {
  for (const std::unique_ptr<Target>& target : session.targets().all()) {
    if (target->is_recording())
      target->recorder().observer().Ask();
  }
  const uint64_t end = MonotonicNs() + kPatienceNs;
  bool is_waiting = true;
  while (is_waiting && MonotonicNs() < end) {
    serve();
    is_waiting = false;
    for (const std::unique_ptr<Target>& target : session.targets().all())
      is_waiting |= target->is_recording() && !target->recorder().observer().HasAnswer();
    if (is_waiting)
      SleepNs(1'000'000);
  }
}

}  // namespace heapprofd
