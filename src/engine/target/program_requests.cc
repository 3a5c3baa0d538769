#include "engine/target/program_requests.h"

#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMaxMarks = 10'000;
constexpr size_t kMaxDumps = 1000;
// What they cost the trace and the finisher, counted in call sites.
constexpr uint64_t kMaxCost = 2'000'000;
constexpr uint64_t kCostOfHeap = 16;  // also of an empty one

}  // namespace

void ProgramRequests::KeepMark(Mark mark) {
  if (profile_->marks.size() >= kMaxMarks || (account_ && !account_->HasRoom())) {
    ++profile_->quality.refused_marks;
    return;
  }
  profile_->marks.push_back(std::move(mark));
  Charge();
}

bool ProgramRequests::MayDump() {
  const bool may =
      dumps_ < kMaxDumps && cost_ < kMaxCost && (!account_ || account_->HasRoom());
  profile_->quality.refused_dumps += may ? 0u : 1u;
  return may;
}

void ProgramRequests::KeepDump() {
  ++dumps_;
  for (const HeapDump& dump : profile_->heaps)
    cost_ += kCostOfHeap + dump.callsites.size() + dump.threads.size();
  Charge();
  profile_->requested_dumps.push_back(profile_->heaps);
}

// A mark is as much as a call site.
void ProgramRequests::Charge() {
  if (account_)
    account_->Set(cost_ + profile_->marks.size());
}

}  // namespace heapprofd
