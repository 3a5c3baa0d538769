// From what the client says about a stack to a callsite; learning rules, comparing them
// with full unwinding, and forgetting what was derived from code that is gone.
#include <algorithm>
#include <bit>

#include "engine/target/sample_parts.h"
#include "engine/target/target.h"
#include "walk/stack_hash.h"

namespace heapprofd {
namespace {

constexpr uint64_t kSettledNs = 1'000'000'000;  // most code has been seen after this
constexpr uint64_t kRegionsNs = 50'000'000;
constexpr size_t kMaxStacks = 4'000'000;
constexpr size_t kMaxFrameCache = 1'000'000;

StackCopy CopyOf(const SampleParts& parts) {
  const StackCopyHeader& header = parts.copy;
  StackCopy copy{.cursor = {.key = header.key, .sp = header.sp, .bp = header.bp},
                 .bytes = parts.copy_bytes,
                 .anchor = {}};
  if (parts.record.outer_hash != 0 && (parts.record.flags & kSampleIsCheck) == 0)
    copy.anchor =
        Cursor{.key = header.anchor_key, .sp = header.anchor_sp, .bp = header.anchor_bp};
  return copy;
}

}  // namespace

CallsiteId Target::CallsiteOfSample(const SampleParts& parts) {
  Quality& quality = profile_.quality;
  const uint8_t flags = parts.record.flags;
  if (profile_.callsites.size() > kMaxCallsites || !has_memory_)
    return NamedStack("[too many stacks]");
  if ((flags & kSampleHasStackCopy) != 0)
    ++dear_records_;
  if ((flags & kSampleForeignStack) != 0)
    PublishStackRegions();
  if ((flags & kSampleHasStackCopy) != 0 && (flags & kSampleIsCheck) == 0)
    return UnwindCopy(parts);
  if (parts.record.outer_hash == 0) {
    ++quality.truncated_stacks;
    return InternStack(parts.keys);
  }
  ++quality.walked_samples;
  if ((flags & kSampleTooDeep) != 0)
    ++quality.truncated_stacks;
  if ((flags & kSampleCut) != 0)
    ++quality.unwind_errors;
  if ((flags & kSampleIsCheck) != 0 && (flags & kSampleHasStackCopy) != 0)
    CheckAgreement(parts);
  return CallsiteInside(parts.record.outer_hash, parts.keys);
}

// The callsite of `keys` inside of the stack with this hash.
CallsiteId Target::CallsiteInside(uint64_t outer_hash, std::span<const uint64_t> keys) {
  if (outer_hash == kEmptyStackHash)
    return InternStack(keys);
  if (const CallsiteId* known = stacks_.Find(outer_hash))
    return ExtendKnownStack(*known, outer_hash, keys);
  // On its way when the stacks were forgotten: it means what it meant then.
  if (const CallsiteId* previous = previous_stacks_.Find(outer_hash))
    return ExtendStack(*previous, keys);
  // The record that brought the outer frames was lost: have every stack sent anew.
  ++profile_.quality.unknown_stacks;
  memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
  return NamedStack("[stack lost]");
}

bool Target::IsSettled() const {
  return last_event_ns_ > profile_.process.start_ns + kSettledNs;
}

CallsiteId Target::UnwindCopy(const SampleParts& parts) {
  Quality& quality = profile_.quality;
  ++quality.copied_samples;
  if (IsSettled())
    ++quality.settled_copies;
  const uint64_t begin = MonotonicNs();
  UnwoundStack unwound = unwinder_->Unwind(
      CopyOf(parts), kMaxFrames - std::min(parts.keys.size(), kMaxFrames - 1),
      UnwindMode::kCached);
  ForgetReplacedCode();  // before the new rules are published
  RuleTable& rules = memory_->engine().rules;
  for (const auto& [key, rule] : unwound.rules)
    rules.Insert(key, rule);
  const uint64_t spent_us = (MonotonicNs() - begin) / 1000;
  quality.unwind_time_us += spent_us;
  ++quality.unwind_times[std::min<size_t>(static_cast<size_t>(std::bit_width(spent_us)),
                                          kUnwindTimeBuckets - 1)];
  std::vector<uint64_t> keys(parts.keys.begin(), parts.keys.end());
  keys.insert(keys.end(), unwound.keys.begin(), unwound.keys.end());
  if (keys.empty())
    keys.push_back(parts.copy.key);
  if (unwound.stop == StopReason::kAnchor)
    return CallsiteInside(parts.record.outer_hash, keys);
  if (unwound.stop == StopReason::kTruncatedCopy || unwound.stop == StopReason::kTooDeep)
    ++quality.truncated_stacks;
  else if (unwound.stop != StopReason::kComplete)
    ++quality.unwind_errors;
  return InternStack(keys);
}

void Target::CheckAgreement(const SampleParts& parts) {
  const UnwoundStack unwound =
      unwinder_->Unwind(CopyOf(parts), kMaxFrames, UnwindMode::kFresh);
  if (unwound.stop == StopReason::kTruncatedCopy)
    return;  // nothing to compare with
  ++profile_.quality.checked_samples;
  if (std::ranges::equal(unwound.keys, parts.keys))
    ++profile_.quality.agreed_samples;
  else
    ForgetCode();
}

CallsiteId Target::InternStack(std::span<const uint64_t> keys) {
  const CallsiteId callsite = ExtendKnownStack(kNoId, kEmptyStackHash, keys);
  return callsite != kNoId ? callsite : NamedStack("[stack lost]");
}

// The callsite of `keys`, innermost first, inside of `outer`.
CallsiteId Target::ExtendStack(CallsiteId outer, std::span<const uint64_t> keys) {
  for (size_t i = keys.size(); i-- > 0;)
    outer = interner_->InternCallsite(outer, FrameOfKey(keys[i]));
  return outer;
}

// The same for a stack that clients may refer to from now on. Most of a new stack is
// known from others, so its longest known part is looked for from the inside.
CallsiteId Target::ExtendKnownStack(CallsiteId outer,
                                    uint64_t outer_hash,
                                    std::span<const uint64_t> keys) {
  if (stacks_.size() >= kMaxStacks)
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
    const uint64_t replacements = replacements_seen_;
    outer = interner_->InternCallsite(outer, FrameOfKey(keys[i]));
    if (replacements_seen_ != replacements)
      return ExtendStack(outer, keys.first(i));  // of code that is gone
    stacks_.Insert(prefix_hashes_[i], outer);
  }
  return outer;
}

FrameId Target::FrameOfKey(uint64_t key) {
  if (const FrameId* known = frames_.Find(key))
    return *known;
  const uint64_t pc = key - 1;
  const std::optional<CodeLocation> location = address_space_->FindOrRefresh(pc);
  ForgetReplacedCode();
  if (!location)
    ++profile_.quality.unmapped_frames;
  const FrameId frame = location
                            ? interner_->InternFrame(location->mapping, location->rel_pc)
                            : interner_->InternFrame(kNoId, pc);
  if (frames_.size() >= kMaxFrameCache)
    frames_.Clear();
  frames_.Insert(key, frame);
  return frame;
}

CallsiteId Target::NamedStack(const std::string& name) {
  return interner_->InternCallsite(kNoId, interner_->InternNamedFrame(name));
}

void Target::HandleModulesChanged() {
  const uint32_t epoch =
      memory_->client().ring.modules_epoch.load(std::memory_order_acquire);
  std::atomic<uint32_t>& rules_epoch = memory_->engine().control.rules_epoch;
  if (epoch == rules_epoch.load(std::memory_order_relaxed))
    return;  // looked at with an earlier one
  if (is_modules_change_late_ && !address_space_->MayRefresh())
    return;
  const Result<RefreshOutcome> outcome = address_space_->Refresh();
  is_modules_change_late_ = outcome.ok() && outcome.value().is_late;
  if (!outcome.ok() || is_modules_change_late_)
    return;  // the process is gone; what is known stays true for what was recorded
  // Other code may come to an empty place before anybody looks again.
  if (removals_seen_ != address_space_->removals())
    ForgetCode();
  removals_seen_ = address_space_->removals();
  ForgetReplacedCode();
  rules_epoch.store(epoch, std::memory_order_release);
}

// Whoever read the maps anew: what was derived from code that is gone must not be used
// for the code that lies there now.
void Target::ForgetReplacedCode() {
  if (replacements_seen_ == address_space_->replacements())
    return;
  replacements_seen_ = address_space_->replacements();
  ForgetCode();
}

// Code was unloaded or a rule proved wrong: addresses may mean something else from now
// on.
void Target::ForgetCode() {
  memory_->engine().rules.Clear();
  unwinder_->ForgetRules();
  frames_.Clear();
  ForgetStacks();
}

// Clients send all frames of every stack again; records on their way still mean the
// forgotten ones.
void Target::ForgetStacks() {
  if (reader_->position() < previous_stacks_end_ && previous_stacks_.size() < kMaxStacks)
    previous_stacks_.Merge(stacks_);
  else
    previous_stacks_ = std::move(stacks_);
  stacks_.Clear();
  previous_stacks_end_ = reader_->position() + reader_->pending_bytes();
  memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
}

void Target::PublishStackRegions() {
  const uint64_t now = clock_->last_ns();
  if (regions_published_ns_ != 0) {
    if (now - regions_published_ns_ < kRegionsNs || !address_space_->RefreshIfCheap())
      return;
  }
  ForgetReplacedCode();
  regions_published_ns_ = std::max<uint64_t>(now, 1);
  StackRegions& shared = memory_->engine().stack_regions;
  const auto& regions = address_space_->writable_regions();
  // Stacks are more often mapped late, above the executable and its heap: keep the
  // highest.
  const size_t count = std::min(regions.size(), kMaxStackRegions);
  const size_t first = regions.size() - count;
  shared.version.fetch_add(1, std::memory_order_acq_rel);
  for (size_t i = 0; i < count; ++i) {
    shared.regions[i].low.store(regions[first + i].start, std::memory_order_relaxed);
    shared.regions[i].high.store(regions[first + i].end, std::memory_order_relaxed);
  }
  shared.count.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
  shared.version.fetch_add(1, std::memory_order_release);
}

}  // namespace heapprofd
