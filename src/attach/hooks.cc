#include "attach/hooks.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "attach/client_image.h"
#include "attach/prologue.h"
#include "attach/refusals.h"
#include "attach/return_places.h"

namespace heapprofd {

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
    std::array<uint8_t, kMaxPatchLength> bytes{};
    if (!process_->Read(record.address, bytes.data(), record.length) ||
        memcmp(bytes.data(), record.original, record.length) != 0)
      return LostRace(process_->pid(), "its code has just changed");
    replaced.push_back(
        {.begin = record.address,
         .end = record.address + record.length,
         .copy = record.gate,
         .instructions = MovedInstructions(std::span(bytes).first(record.length),
                                           record.address, record.gate)});
  }
  if (!LeadOut(*process_, threads, replaced))
    return false;
  are_in_ = true;
  for (const PatchRecord& record : patches_)
    process_->Write(record.address, record.written, record.length);
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
  for (const PatchRecord& record : patches_) {
    std::array<uint8_t, kMaxPatchLength> bytes{};
    if (!process_->Read(record.address, bytes.data(), record.length))
      continue;  // unloaded
    if (memcmp(bytes.data(), record.written, record.length) == 0) {
      process_->Write(record.address, record.original, record.length);
      process_->Read(record.address, bytes.data(), record.length);
    }
    foreign += memcmp(bytes.data(), record.original, record.length) != 0 ? 1 : 0;
  }
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

void Hooks::Leave() {
  Switch(0);
  are_in_ = false;
}

}  // namespace heapprofd
