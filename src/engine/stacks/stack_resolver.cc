#include "engine/stacks/stack_resolver.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "walk/stack_hash.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFrameCache = 1'000'000;

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
      reader_(parts.reader),
      code_(parts.code),
      unwinder_(parts.code),
      interner_(parts.profile),
      called_(parts.profile, &interner_),
      labels_(parts.profile, &interner_),
      watch_(&parts.memory->client(), &parts.memory->engine().control, parts.code),
      regions_(&parts.memory->engine().stack_regions, parts.code, parts.clock) {}

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
    return InternStack(sample.keys);
  }
  ++quality.walked_samples;
  if ((flags & kSampleTooDeep) != 0)
    ++quality.truncated_stacks;
  if ((flags & kSampleCut) != 0)
    ++quality.unwind_errors;
  if ((flags & kSampleIsCheck) != 0 && (flags & kSampleHasStackCopy) != 0)
    CheckAgreement(sample);
  return CallsiteInside(sample.record.outer_hash, sample.keys);
}

// The callsite of `keys` inside of the stack with this hash.
CallsiteId StackResolver::CallsiteInside(uint64_t outer_hash,
                                         std::span<const uint64_t> keys) {
  if (outer_hash == kEmptyStackHash)
    return InternStack(keys);
  if (const CallsiteId* known = stacks_.Find(outer_hash))
    return ExtendKnownStack(*known, outer_hash, keys);
  // On its way when the stacks were forgotten: it means what it meant then.
  if (const CallsiteId* previous = stacks_.FindForgotten(outer_hash))
    return ExtendStack(*previous, keys);
  // The record that brought the outer frames was lost: have every stack sent anew.
  ++profile_->quality.unknown_stacks;
  memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
  return NamedStack("[stack lost]");
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
    return CallsiteInside(sample.record.outer_hash, keys);
  if (unwound.stop == StopReason::kTruncatedCopy || unwound.stop == StopReason::kTooDeep)
    ++quality.truncated_stacks;
  else if (unwound.stop != StopReason::kComplete)
    ++quality.unwind_errors;
  return InternStack(keys);
}

// The rules that it took are published: the client walks such stacks by itself then.
UnwoundStack StackResolver::UnwindAndLearn(const SampleParts& sample) {
  const uint64_t begin = MonotonicNs();
  UnwoundStack unwound = unwinder_.Unwind(
      CopyOf(sample), kMaxFrames - std::min(sample.keys.size(), kMaxFrames - 1),
      UnwindMode::kCached);
  ForgetReplacedCode();  // before the new rules are published
  RuleTable& rules = memory_->engine().rules;
  for (const auto& [key, rule] : unwound.rules)
    rules.Insert(key, rule);
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

CallsiteId StackResolver::InternStack(std::span<const uint64_t> keys) {
  const CallsiteId callsite = ExtendKnownStack(kNoId, kEmptyStackHash, keys);
  return callsite != kNoId ? callsite : NamedStack("[stack lost]");
}

// The callsite of `keys`, innermost first, inside of `outer`.
CallsiteId StackResolver::ExtendStack(CallsiteId outer, std::span<const uint64_t> keys) {
  for (size_t i = keys.size(); i-- > 0;)
    outer = interner_.InternCallsite(outer, FrameOfKey(keys[i]));
  return outer;
}

// The same for a stack that clients may refer to from now on. Most of a new stack is
// known from others, so its longest known part is looked for from the inside.
CallsiteId StackResolver::ExtendKnownStack(CallsiteId outer,
                                           uint64_t outer_hash,
                                           std::span<const uint64_t> keys) {
  if (stacks_.is_full())
    ForgetStacks();
  prefix_hashes_.resize(keys.size());  // [i]: of keys[i] and all outside of it
  uint64_t hash = outer_hash;
  for (size_t i = keys.size(); i-- > 0;)
    prefix_hashes_[i] = hash = ExtendStackHash(hash, keys[i]);
  size_t new_count = 0;
  for (; new_count < keys.size(); ++new_count) {
    if (const CallsiteId* known = stacks_.Find(prefix_hashes_[new_count])) {
      outer = *known;
      break;
    }
  }
  for (size_t i = new_count; i-- > 0;) {
    const uint64_t replacements = watch_.replacements_seen();
    outer = interner_.InternCallsite(outer, FrameOfKey(keys[i]));
    if (watch_.replacements_seen() != replacements)
      return ExtendStack(outer, keys.first(i));  // of code that is gone
    stacks_.Insert(prefix_hashes_[i], outer);
  }
  return outer;
}

FrameId StackResolver::FrameOfKey(uint64_t key) {
  if (const FrameId* known = frames_.Find(key))
    return *known;
  const uint64_t pc = key - 1;
  const std::optional<CodeLocation> location = code_->FindOrRefresh(pc);
  ForgetReplacedCode();
  if (!location)
    ++profile_->quality.unmapped_frames;
  const FrameId frame = location
                            ? interner_.InternFrame(location->mapping, location->rel_pc)
                            : interner_.InternFrame(kNoId, pc);
  if (frames_.size() >= kMaxFrameCache)
    frames_.Clear();
  frames_.Insert(key, frame);
  return frame;
}

CallsiteId StackResolver::NamedStack(const std::string& name) {
  return interner_.InternCallsite(kNoId, interner_.InternNamedFrame(name));
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
  memory_->engine().rules.Clear();
  unwinder_.ForgetRules();
  frames_.Clear();
  ForgetStacks();
}

// Clients send all frames of every stack again.
void StackResolver::ForgetStacks() {
  stacks_.Forget(reader_->position(), reader_->position() + reader_->pending_bytes());
  memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
}

void StackResolver::ShowRegions() {
  if (!regions_.LookAgain())
    return;
  ForgetReplacedCode();
  regions_.Show();
}

}  // namespace heapprofd
