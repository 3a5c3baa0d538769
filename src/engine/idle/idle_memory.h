// Idle memory of a target: of malloc's live blocks, what lies on pages that nobody has
// touched since they were marked.
//
// Pages are marked when they are looked at: at each dump, and, for recordings that have
// no others than the last, after 1, 2, 4, ... seconds; not more often than each second. A
// block that is younger than a mark was never idle since. Pages are those of sampled
// blocks, so the figure is an estimate as that of live bytes is; a page is as idle as what
// of it is touched most.
//
// A look is done in steps of milliseconds, between which others get their turns: blocks
// are chosen (engine/idle/chosen_blocks.h), their pages are looked at, the figure is
// made, and what is not idle is marked anew.
//
// One thread: the session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random_seed.h"
#include "engine/idle/chosen_blocks.h"
#include "engine/idle/idle_pages.h"
#include "profile/live_heap.h"
#include "profile/model.h"

namespace heapprofd {

class IdleMemory {
 public:
  // `looks_between`: there are no dumps before the last.
  IdleMemory(IdlePages pages, bool looks_between, uint64_t now_ns)
      : pages_(std::move(pages)), looks_between_(looks_between), started_ns_(now_ns) {
    found_.was_asked_for = true;
  }

  // What a look takes of our memory at most, beside what is kept between looks.
  static constexpr size_t kMaxBytes = size_t{32} << 20;

  enum class Occasion : uint8_t {
    kBetween,
    kDump,
    kEnd,  // nobody looks again: nothing is marked
  };

  // Goes on with a look, or begins one, until `end_ns` (CLOCK_MONOTONIC), or longer by
  // some milliseconds. True: it is done. Pages that it cannot reach with 1.5 s of a
  // processor, or that the kernel does not tell in time, are no part of what is seen. A
  // process that is gone leaves the figure as it was.
  bool Look(const LiveHeap& heap, Occasion occasion, uint64_t now_ns, uint64_t end_ns);

  // One between dumps is under way, or it is time for it.
  bool IsDue(uint64_t now_ns) const;

  bool is_looking() const { return look_ != nullptr; }

  // Ends a look for which there is no more time; what was found before stays.
  void Drop() { look_.reset(); }

  // Instead of a look for which there is no room: it is not known what is idle.
  void Forget() { found_ = {.was_asked_for = true}; }

  // What the last look has found.
  const IdleBlocks& found() const { return found_; }

  // What it takes of our memory.
  size_t bytes() const;

 private:
  // When a page was marked, as of the last look: not at all; by that look, as one that
  // had no mark or as one that was touched since the look before; or by an earlier one.
  enum class Marked : uint8_t { kNot, kFirst, kAgain, kBefore };

  // Of pages, ascending.
  struct Marks {
    std::vector<uint64_t> pages;
    std::vector<Marked> of;
  };

  // One that is under way.
  struct Looking {
    Occasion occasion = Occasion::kBetween;  // the last one of those that went on with it
    ChosenBlocks blocks;
    std::vector<uint64_t> pages;  // of them
    std::vector<IdlePages::Page> looked;
    std::vector<Marked> marks;  // until and then since this look
    size_t at = 0;              // of `pages`, in this step
    bool is_late = false;       // the kernel does not answer
    bool is_gone = false;       // there is no process
    uint64_t spent_ns = 0;      // on this step
  };

  enum class Step : uint8_t { kChoose, kLook, kMark };

  void Begin(Step step);
  bool Choose(const LiveHeap& heap, uint64_t now_ns, uint64_t end_ns);
  template <typename DoSome>
  bool ThroughPages(uint64_t most_ns, uint64_t end_ns, DoSome do_some);
  size_t LookAt(size_t first, size_t count);
  size_t MarkTouched(size_t first, size_t count);
  bool MayMark(uint64_t now_ns) const;
  std::vector<Marked> MarksOf(std::span<const uint64_t> pages) const;
  static bool IsKnown(Marked mark, bool by_last);
  static bool IsIdle(Marked mark, bool by_last);
  IdleBlocks Sum(uint64_t now_ns) const;
  void KeepMarks(uint64_t now_ns);
  bool End(uint64_t now_ns);

  IdlePages pages_;
  bool looks_between_;
  uint64_t started_ns_;
  uint64_t secret_ = RandomSeed();
  Step step_ = Step::kChoose;
  std::unique_ptr<Looking> look_;
  Marks marks_;
  uint64_t looked_ns_ =
      0;                  // CLOCK_MONOTONIC: when the last look ended; 0: there was none
  uint64_t last_ns_ = 0;  // when pages were marked last; 0: never
  uint64_t before_ns_ = 0;  // and the time before that
  IdleBlocks found_;
};

}  // namespace heapprofd
