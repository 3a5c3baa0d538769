#include "engine/stacks/stack_interner.h"

#include <optional>

#include "walk/stack_hash.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFrameCache = 1'000'000;

}  // namespace

CallsiteId StackInterner::Intern(std::span<const uint64_t> keys) {
  const CallsiteId callsite = ExtendKnown(kNoId, kEmptyStackHash, keys);
  return callsite != kNoId ? callsite : Named("[stack lost]");
}

CallsiteId StackInterner::InternInside(uint64_t outer_hash,
                                       std::span<const uint64_t> keys) {
  if (outer_hash == kEmptyStackHash)
    return Intern(keys);
  if (const CallsiteId* known = stacks_.Find(outer_hash))
    return ExtendKnown(*known, outer_hash, keys);
  // On its way when the stacks were forgotten: it means what it meant then.
  if (const CallsiteId* previous = stacks_.FindForgotten(outer_hash))
    return Extend(*previous, keys);
  // The record that brought the outer frames was lost: have every stack sent anew.
  ++parts_.profile->quality.unknown_stacks;
  AskForAllStacks();
  return Named("[stack lost]");
}

void StackInterner::AskForAllStacks() {
  parts_.control->known_stacks_epoch.store(++stacks_epoch_, std::memory_order_release);
}

CallsiteId StackInterner::Named(const std::string& name) {
  return parts_.interner->InternCallsite(kNoId, parts_.interner->InternNamedFrame(name));
}

// The callsite of `keys`, innermost first, inside of `outer`.
CallsiteId StackInterner::Extend(CallsiteId outer, std::span<const uint64_t> keys) {
  for (size_t i = keys.size(); i-- > 0;)
    outer = parts_.interner->InternCallsite(outer, FrameOf(keys[i]));
  return outer;
}

// The same for a stack that clients may refer to from now on. Most of a new stack is
// known from others, so its longest known part is looked for from the inside.
CallsiteId StackInterner::ExtendKnown(CallsiteId outer,
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
    const uint64_t forgotten = forgotten_codes_;
    outer = parts_.interner->InternCallsite(outer, FrameOf(keys[i]));
    if (forgotten_codes_ != forgotten)
      return Extend(outer, keys.first(i));  // of code that is gone
    stacks_.Insert(prefix_hashes_[i], outer);
  }
  return outer;
}

FrameId StackInterner::FrameOf(uint64_t key) {
  if (const FrameId* known = frames_.Find(key))
    return *known;
  const uint64_t pc = key - 1;
  const std::optional<CodeLocation> location = parts_.code->FindOrRefresh(pc);
  parts_.look_at_code();
  if (!location)
    ++parts_.profile->quality.unmapped_frames;
  const FrameId frame =
      location ? parts_.interner->InternFrame(location->mapping, location->rel_pc)
               : parts_.interner->InternFrame(kNoId, pc);
  if (frames_.size() >= kMaxFrameCache)
    frames_.Clear();
  frames_.Insert(key, frame);
  return frame;
}

void StackInterner::ForgetCode() {
  ++forgotten_codes_;
  frames_.Clear();
  ForgetStacks();
}

void StackInterner::ForgetStacks() {
  stacks_.Forget(parts_.reader->position(),
                 parts_.reader->position() + parts_.reader->pending_bytes());
  AskForAllStacks();
}

}  // namespace heapprofd
