// Address ranges that may nest or overlap, turned into disjoint pieces for binary search.
//
//   added        [--------- outer ---------)        found      outer inner outer
//                      [- inner -)                         [----)[-----)[-----)
//
// Where ranges overlap, the one that starts last wins; of those that start together the
// shorter one, of equal ranges the first added. Used for symbols, compile units and
// functions alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace heapprofd {

template <typename T>
class RangeMap {
 public:
  // [start, end); empty ranges are ignored.
  void Add(uint64_t start, uint64_t end, T value) {
    if (start < end)
      pieces_.push_back({start, end, value});
  }

  size_t size() const { return pieces_.size(); }

  // Must be called once after the last Add and before the first Find.
  void Build() {
    const auto outer_first = [](const Piece& a, const Piece& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    };
    if (!std::ranges::is_sorted(pieces_, outer_first))
      std::ranges::stable_sort(pieces_, outer_first);
    std::vector<Piece> disjoint;
    disjoint.reserve(pieces_.size());
    std::vector<Piece> open;  // ranges that hold the current address, innermost last
    uint64_t position = 0;
    for (const Piece& next : pieces_) {
      CloseUntil(next.start, position, open, disjoint);
      position = next.start;
      if (open.empty() || open.back().start != next.start || open.back().end != next.end)
        open.push_back(next);
    }
    CloseUntil(UINT64_MAX, position, open, disjoint);
    disjoint.shrink_to_fit();
    pieces_ = std::move(disjoint);
  }

  std::optional<T> Find(uint64_t address) const {
    const auto after = std::ranges::upper_bound(pieces_, address, {}, &Piece::start);
    if (after == pieces_.begin() || address >= std::prev(after)->end)
      return std::nullopt;
    return std::prev(after)->value;
  }

 private:
  struct Piece {
    uint64_t start;
    uint64_t end;
    T value;
  };

  // Emits what the open ranges cover in [position, until) and drops those that end there.
  static void CloseUntil(uint64_t until,
                         uint64_t position,
                         std::vector<Piece>& open,
                         std::vector<Piece>& disjoint) {
    while (!open.empty()) {
      const Piece& innermost = open.back();
      const uint64_t end = std::min(innermost.end, until);
      if (position < end) {
        disjoint.push_back({position, end, innermost.value});
        position = end;
      }
      if (innermost.end > until)
        return;
      open.pop_back();
    }
  }

  std::vector<Piece> pieces_;
};

}  // namespace heapprofd
