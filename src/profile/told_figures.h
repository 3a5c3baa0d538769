// Says which figures of a heap its file gives. A figure that a file does not give is
// unknown: its values are 0, mean nothing, and nothing shows them.
#pragma once

namespace heapprofd {

struct ToldFigures {
  bool live_size = true;
  bool live_count = true;
  bool alloc_size = true;  // all that was ever allocated
  bool alloc_count = true;

  static constexpr ToldFigures None() { return {false, false, false, false}; }

  bool live() const { return live_size || live_count; }

  bool allocated() const { return alloc_size || alloc_count; }

  // What all of several heaps give.
  ToldFigures& operator&=(const ToldFigures& other) {
    live_size &= other.live_size;
    live_count &= other.live_count;
    alloc_size &= other.alloc_size;
    alloc_count &= other.alloc_count;
    return *this;
  }
};

}  // namespace heapprofd
