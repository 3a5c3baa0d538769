#include "attach/hooks.h"

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "attach/client_image.h"
#include "attach/entry/hook_contract.h"
#include "attach/entry/patched_code.h"
#include "attach/prologue.h"
#include "attach/refusals.h"
#include "attach/return_places.h"

namespace heapprofd {
namespace {

Hook HookOf(const PatchRecord& record) {
  return static_cast<Hook>((record.hook - 1) % kHookCount);
}

uint32_t AllocatorOf(const PatchRecord& record) {
  return (record.hook - 1) / static_cast<uint32_t>(kHookCount);
}

}  // namespace

Hooks::Hooks(const RemoteProcess* process,
             uint64_t base,
             uint64_t seed,
             std::vector<PatchRecord> patches)
    : process_(process), base_(base), seed_(seed), patches_(std::move(patches)) {}

// Whether what lies there is still what we have placed. The lock does not keep out an
// engine that sees another /proc; it places, too, only while it traces a thread.
bool Hooks::IsStillOurs() const {
  uint64_t seed = 0;
  return process_->ReadObject(
             base_ + ClientHeader().state + offsetof(AttachState, request.seed), &seed) &&
         seed == seed_;
}

bool Hooks::Switch(uint32_t is_on) const {
  return process_->WriteObject(base_ + ClientHeader().wiped, is_on);
}

Result<bool> Hooks::PutIn(const std::vector<TracedThread>& threads) {
  if (!IsStillOurs())
    return LostRace(process_->pid(), "another heap_profile has attached to it meanwhile");
  std::vector<ReplacedCode> replaced;
  for (const PatchRecord& record : patches_) {
    if (!IsUntouched(*process_, record))
      return LostRace(process_->pid(), "its code has just changed");
    const uint64_t copy = record.gate + record.copied_at;
    replaced.push_back(
        {.begin = record.address,
         .end = record.address + record.length,
         .copy = copy,
         .instructions = MovedInstructions(
             std::span(record.original).first(record.length), record.address, copy)});
  }
  if (!LeadOut(*process_, threads, replaced))
    return false;
  are_in_ = true;
  for (const PatchRecord& record : patches_)
    WritePatch(*process_, record);
  Switch(1);
  return true;
}

bool Hooks::TakeOver() {
  are_in_ = true;
  return process_->IsSameImage() &&
         process_->WriteObject(base_ + ClientHeader().wiped + kOwnFilesOffset,
                               kHasOwnFiles);
}

Status Hooks::TakeOut() {
  Switch(0);
  size_t foreign = 0;
  for (const PatchRecord& record : patches_)
    foreign += TakePatchBack(*process_, record) ? 0u : 1u;
  are_in_ = false;
  if (foreign == 0)
    return {};
  return Status(
      StatusCode::kUnavailable,
      std::to_string(foreign) + " functions of process " +
          std::to_string(process_->pid()) +
          " were changed by somebody else meanwhile and were left so; our hooks "
          "in them do nothing");
}

ForeignMarks Hooks::LookForMarks() const {
  ForeignMarks marks;
  for (const PatchRecord& record : patches_) {
    if (record.hook == 0)
      continue;
    if (IsProbed(*process_, record))
      marks.probed.push_back(HookOf(record));
    if (LookAtPatch(*process_, record) == PatchBytes::kBroken)
      marks.broken.push_back(HookOf(record));
  }
  return marks;
}

void Hooks::TakeBrokenOut() {
  std::set<uint32_t> unseen;  // allocators of which something that is freed is missed
  for (const PatchRecord& record : patches_) {
    if (record.hook == 0 || LookAtPatch(*process_, record) != PatchBytes::kBroken)
      continue;
    TakePatchBack(*process_, record);
    if (IsFreeing(HookOf(record)))
      unseen.insert(AllocatorOf(record));
  }
  for (const PatchRecord& record : patches_) {
    if (record.hook != 0 && unseen.contains(AllocatorOf(record)))
      TakePatchBack(*process_, record);
  }
}

void Hooks::Leave() {
  Switch(0);
  are_in_ = false;
}

}  // namespace heapprofd
