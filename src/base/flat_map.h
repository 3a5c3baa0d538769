// A map from 64-bit numbers to small plain values, in one piece of memory: what a
// recording looks up for every event. A look-up costs about one cache miss, which
// Prefetch can pay early, and giving all of it back costs nothing. What a burst has made
// it take is given back when the burst is over.
//
// The keys are often the word of a profiled program, so the places of an own map are made
// from a secret of it: nobody can choose keys that share their place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random_seed.h"
#include "base/row_index.h"

namespace heapprofd {

template <typename Value>
class FlatMap {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  FlatMap() = default;

  FlatMap(FlatMap&& other) noexcept { swap(other); }

  FlatMap& operator=(FlatMap&& other) noexcept {
    FlatMap moved(std::move(other));
    swap(moved);
    return *this;
  }

  FlatMap(const FlatMap&) = delete;
  FlatMap& operator=(const FlatMap&) = delete;
  ~FlatMap() = default;

  size_t size() const { return size_; }

  // What it takes of our memory.
  size_t bytes() const { return slots_.size() * sizeof(Slot); }

  // What the next Insert takes beside that, for a larger table; the smaller one is given
  // back afterwards.
  size_t growth_bytes() const { return IsFull() ? GrownSize() * sizeof(Slot) : 0; }

  // Lets the processor fetch what the next look-up of this key will read.
  void Prefetch(uint64_t key) const {
    if (!slots_.empty())
      __builtin_prefetch(&slots_[PlaceOf(key)]);
  }

  // nullptr: there is none. The pointer ends with the next change of the map.
  Value* Find(uint64_t key) {
    if (key == kVacant)
      return has_vacant_key_ ? &vacant_value_ : nullptr;
    if (slots_.empty())
      return nullptr;
    Slot& slot = slots_[Search(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

  bool Contains(uint64_t key) const {
    return key == kVacant ? has_vacant_key_
                          : !slots_.empty() && slots_[Search(key)].key == key;
  }

  // The value that stands under the key now, which is `value` if there was none. False:
  // there was one.
  std::pair<Value*, bool> Insert(uint64_t key, const Value& value) {
    if (key == kVacant) {
      const bool is_new = !std::exchange(has_vacant_key_, true);
      if (is_new)
        vacant_value_ = value;
      size_ += is_new ? 1 : 0;
      return {&vacant_value_, is_new};
    }
    if (IsFull())
      Resize(GrownSize());
    Slot& slot = slots_[Search(key)];
    const bool is_new = slot.key != key;
    if (is_new) {
      slot = {.key = key, .value = value};
      ++size_;
    }
    return {&slot.value, is_new};
  }

  // False: there was none.
  bool Erase(uint64_t key) {
    if (key == kVacant) {
      const bool was_there = std::exchange(has_vacant_key_, false);
      size_ -= was_there ? 1 : 0;
      return was_there;
    }
    if (slots_.empty())
      return false;
    const size_t place = Search(key);
    if (slots_[place].key != key)
      return false;
    Close(place);
    --size_;
    if (slots_.size() > kFirstSize && size_ * 8 < slots_.size())
      Resize(slots_.size() / 2);
    return true;
  }

  // `visit(key, value)`, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    if (has_vacant_key_)
      visit(kVacant, vacant_value_);
    VisitSome(0, slots_.size(), visit);
  }

  // Where VisitSome ends.
  size_t place_count() const { return slots_.size(); }

  // The same of `count` places, from this one on, and returns where to go on. A map that
  // changes between two calls may show something twice, and one that shrinks may leave
  // something out. The key 0 has no place.
  template <typename Visit>
  size_t VisitSome(size_t from, size_t count, Visit visit) const {
    const size_t end =
        std::max(from, std::min(from + count, static_cast<size_t>(slots_.size())));
    for (size_t place = from; place < end; ++place) {
      if (slots_[place].key != kVacant)
        visit(slots_[place].key, slots_[place].value);
    }
    return end;
  }

  void Clear() { *this = FlatMap(); }

  // Takes what `other` has under keys that this map lacks; `other` is empty afterwards.
  void Merge(FlatMap& other) {
    other.ForEach([this](uint64_t key, const Value& value) { Insert(key, value); });
    other.Clear();
  }

 private:
  static constexpr uint64_t kVacant = 0;  // as a key it is kept apart
  static constexpr size_t kFirstSize = 64;

  struct Slot {
    uint64_t key;
    Value value;
  };

  void swap(FlatMap& other) noexcept {
    std::swap(secret_, other.secret_);
    std::swap(size_, other.size_);
    slots_.swap(other.slots_);
    std::swap(has_vacant_key_, other.has_vacant_key_);
    std::swap(vacant_value_, other.vacant_value_);
  }

  size_t PlaceOf(uint64_t key) const { return Mix(key ^ secret_) & (slots_.size() - 1); }

  // Place of the key, or the vacant one where it belongs. There always is a vacant one.
  size_t Search(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t place = PlaceOf(key);
    while (slots_[place].key != kVacant && slots_[place].key != key)
      place = (place + 1) & mask;
    return place;
  }

  // Moves up what would not be found any more if this place were vacant.
  void Close(size_t hole) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = (hole + 1) & mask; slots_[at].key != kVacant; at = (at + 1) & mask) {
      const size_t from_home = (at - PlaceOf(slots_[at].key)) & mask;
      if (from_home < ((at - hole) & mask))
        continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].key = kVacant;
  }

  bool IsFull() const { return (size_ + 1) * 4 > slots_.size() * 3; }

  size_t GrownSize() const { return slots_.empty() ? kFirstSize : slots_.size() * 2; }

  void Resize(size_t places) {
    if (slots_.empty())
      secret_ = RandomSeed();
    std::vector<Slot> old(places);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != kVacant)
        slots_[Search(slot.key)] = slot;
    }
  }

  uint64_t secret_ = 0;
  size_t size_ = 0;
  std::vector<Slot> slots_;
  bool has_vacant_key_ = false;
  Value vacant_value_{};
};

}  // namespace heapprofd
