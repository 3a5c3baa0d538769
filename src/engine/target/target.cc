#include "engine/target/target.h"

#include <poll.h>

#include <string>
#include <utility>

#include "attach/setup_request.h"
#include "base/clock.h"
#include "base/files/foreign_file.h"
#include "base/files/proc_files.h"
#include "engine/process_info.h"
#include "engine/root_directory.h"
#include "wire/small_memory.h"

namespace heapprofd {
namespace {

static_assert(kUsualRing == kDefaultRingSize);

TargetProfile NewProfile(const Target::Origin& origin) {
  TargetProfile profile;
  profile.process = DescribeProcess(origin.thread);
  profile.process.pid = origin.pid;
  profile.process.start_ns = MonotonicNs();
  profile.from_startup = origin.from_startup;
  profile.unhooked = origin.unhooked;
  return profile;
}

// Readable: it has ended.
bool IsAlive(int process) {
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  return process >= 0 && poll(&ended, 1, 0) == 0;
}

}  // namespace

Target::Target(const Origin& origin, bool follows_children, ModuleCache* modules)
    : profile_(NewProfile(origin)),
      held_to_account_(UserOf(origin.thread)),
      root_(OpenRoot(origin.thread)),
      own_pid_(InnerId(origin.thread)),
      is_attached_(origin.is_attached),
      code_(origin.thread, modules, &profile_.mappings),
      requests_(&profile_),
      account_(RealUser(origin.thread).value_or(kNobody),
               {.profile = &profile_, .requests = &requests_, .code = &code_}),
      children_(follows_children, &profile_.forked) {}

Result<std::unique_ptr<Target>> Target::Create(const Origin& origin,
                                               const SessionConfig& config,
                                               ModuleCache* modules,
                                               const TscClock* clock) {
  HPD_TRY_ASSIGN(
      std::unique_ptr<SharedMemory> memory,
      SharedMemory::Create(RingSizeFor(origin.thread, config.ring_size_bytes)));
  return CreateWith(std::move(memory), origin, config, modules, clock);
}

Result<std::unique_ptr<Target>> Target::CreateWith(std::unique_ptr<SharedMemory> memory,
                                                   const Origin& origin,
                                                   const SessionConfig& config,
                                                   ModuleCache* modules,
                                                   const TscClock* clock) {
  std::unique_ptr<Target> target(new Target(origin, config.follow_children, modules));
  HPD_TRY_ASSIGN([[maybe_unused]] const RefreshOutcome outcome, target->code_.Refresh());
  target->recorder_ = std::make_unique<TargetRecorder>(
      std::move(memory), config,
      TargetRecorder::Kept{.profile = &target->profile_,
                           .code = &target->code_,
                           .account = &target->account_,
                           .requests = &target->requests_,
                           .children = &target->children_,
                           .clock = clock},
      /*knows_threads=*/target->own_pid_ == origin.thread);
  if (!IsAlive(origin.process))
    return Status(StatusCode::kNotFound,
                  "process " + std::to_string(origin.pid) + " has ended");
  return target;
}

void Target::Stop(TargetEnd end) {
  recorder_->Stop();
  profile_.end = end;
}

void Target::ReleaseRecorder() {
  const bool needs_root =
      code_.known().has_any_without_file() || profile_.quality.unmapped_frames > 0;
  std::unique_ptr<SharedMemory> memory = recorder_->TakeMemory();
  recorder_.reset();
  children_.Keep(std::move(memory), /*may_begin=*/is_attached_);
  code_.Release();
  if (!needs_root || !MayKeepRoot())
    root_.reset();
  profile_.frames.shrink_to_fit();  // as much as they are accounted for
  profile_.callsites.shrink_to_fit();
  account_.End();
}

uint64_t Target::lost_records() const {
  return recorder_ != nullptr ? recorder_->lost_records() : profile_.quality.lost_records;
}

}  // namespace heapprofd
