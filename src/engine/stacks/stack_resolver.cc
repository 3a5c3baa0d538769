#include "engine/stacks/stack_resolver.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"

namespace heapprofd {
namespace {

StackCopy CopyOf(const SampleParts& sample) {
  const StackCopyHeader& header = sample.copy;
  const Cursor first{.key = header.key, .sp = header.sp, .bp = header.bp};
  StackCopy copy{
      .cursor = WithLink(first, header.link), .bytes = sample.copy_bytes, .anchor = {}};
  if (sample.record.outer_hash != 0 && (sample.record.flags & kSampleIsCheck) == 0)
    copy.anchor =
        Cursor{.key = header.anchor_key, .sp = header.anchor_sp, .bp = header.anchor_bp};
  return copy;
}

}  // namespace

StackResolver::StackResolver(const Parts& parts)
    : profile_(parts.profile),
      memory_(parts.memory),
      code_(parts.code),
      unwinder_(parts.code),
      interner_(parts.profile),
      called_(parts.profile, &interner_),
      labels_(parts.profile, &interner_),
      watch_(&parts.memory->client(), &parts.memory->engine().control, parts.code),
      regions_(&parts.memory->engine().stack_regions, parts.code, parts.clock),
      stacks_({.profile = parts.profile,
               .interner = &interner_,
               .code = parts.code,
               .reader = parts.reader,
               .control = &parts.memory->engine().control,
               .look_at_code = [this] { ForgetReplacedCode(); }}),
      rules_(&parts.memory->engine().rules) {}

CallsiteId StackResolver::StackOf(const SampleParts& sample, bool is_settled) {
  Quality& quality = profile_->quality;
  const uint8_t flags = sample.record.flags;
  if ((flags & kSampleHasStackCopy) != 0)
    ++copies_;
  if ((flags & kSampleForeignStack) != 0)
    ShowRegions();
  if ((flags & kSampleHasStackCopy) != 0 && (flags & kSampleIsCheck) == 0)
    return UnwindCopy(sample, is_settled);
  if (sample.record.outer_hash == 0) {
    ++quality.truncated_stacks;
    return stacks_.Intern(sample.keys);
  }
  ++quality.walked_samples;
  if ((flags & kSampleTooDeep) != 0)
    ++quality.truncated_stacks;
  if ((flags & kSampleCut) != 0)
    ++quality.unwind_errors;
  if ((flags & kSampleIsCheck) != 0 && (flags & kSampleHasStackCopy) != 0)
    CheckAgreement(sample);
  return stacks_.InternInside(sample.record.outer_hash, sample.keys);
}

CallsiteId StackResolver::UnwindCopy(const SampleParts& sample, bool is_settled) {
  Quality& quality = profile_->quality;
  ++quality.copied_samples;
  if (is_settled)
    ++quality.settled_copies;
  const UnwoundStack unwound = UnwindAndLearn(sample);
  std::vector<uint64_t> keys(sample.keys.begin(), sample.keys.end());
  keys.insert(keys.end(), unwound.keys.begin(), unwound.keys.end());
  if (keys.empty())
    keys.push_back(sample.copy.key);
  if (unwound.stop == StopReason::kAnchor)
    return stacks_.InternInside(sample.record.outer_hash, keys);
  if (unwound.stop == StopReason::kTruncatedCopy || unwound.stop == StopReason::kTooDeep)
    ++quality.truncated_stacks;
  else if (unwound.stop != StopReason::kComplete)
    ++quality.unwind_errors;
  if (unwound.stop == StopReason::kUnmapped && code_->is_gone())
    ++quality.late_stacks;
  return stacks_.Intern(keys);
}

// The rules that it took are published: the client walks such stacks by itself then.
UnwoundStack StackResolver::UnwindAndLearn(const SampleParts& sample) {
  const uint64_t begin = MonotonicNs();
  UnwoundStack unwound = unwinder_.Unwind(
      CopyOf(sample), kMaxFrames - std::min(sample.keys.size(), kMaxFrames - 1),
      UnwindMode::kCached);
  ForgetReplacedCode();  // before the new rules are published
  for (const auto& [key, rule] : unwound.rules)
    rules_.Insert(key, rule);
  const uint64_t spent_us = (MonotonicNs() - begin) / 1000;
  Quality& quality = profile_->quality;
  quality.unwind_time_us += spent_us;
  ++quality.unwind_times[std::min<size_t>(static_cast<size_t>(std::bit_width(spent_us)),
                                          kUnwindTimeBuckets - 1)];
  return unwound;
}

void StackResolver::CheckAgreement(const SampleParts& sample) {
  const UnwoundStack unwound =
      unwinder_.Unwind(CopyOf(sample), kMaxFrames, UnwindMode::kFresh);
  if (unwound.stop == StopReason::kTruncatedCopy)
    return;  // nothing to compare with
  ++profile_->quality.checked_samples;
  if (std::ranges::equal(unwound.keys, sample.keys))
    ++profile_->quality.agreed_samples;
  else
    ForgetCode();
}

void StackResolver::OnModulesChanged() {
  const std::optional<uint32_t> epoch = watch_.LookAtUnloading();
  if (!epoch)
    return;
  if (watch_.WasUnloaded())
    ForgetCode();
  ForgetReplacedCode();
  watch_.Confirm(*epoch);
}

void StackResolver::LookAtLateChange() {
  if (watch_.is_late())
    OnModulesChanged();
  if (code_->has_unopened_files() && code_->RefreshIfCheap())
    ForgetReplacedCode();
}

// Whoever read the maps anew: what was derived from code that is gone must not be used
// for the code that lies there now.
void StackResolver::ForgetReplacedCode() {
  if (watch_.WasReplaced())
    ForgetCode();
}

// Code was unloaded or a rule proved wrong: addresses may mean something else from now
// on.
void StackResolver::ForgetCode() {
  rules_.Clear();
  unwinder_.ForgetRules();
  stacks_.ForgetCode();
}

void StackResolver::ShowRegions() {
  if (!regions_.LookAgain())
    return;
  ForgetReplacedCode();
  regions_.Show();
}

}  // namespace heapprofd
