#include "engine/idle/idle_memory.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/page_size.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLookNs = 1'000'000'000;  // of a processor, in all steps of it
constexpr uint64_t kMarkNs = 500'000'000;
constexpr uint64_t kFirstLookNs = 1'000'000'000;
constexpr uint64_t kYoungMarkNs = 1'000'000'000;  // one that is younger stays

// Bytes of a block on a page.
uint64_t ShareOf(const ChosenBlock& block, uint64_t page) {
  const uint64_t begin = std::max(block.address, page * PageSize());
  return std::min(block.end() - begin, (page + 1) * PageSize() - begin);
}

}  // namespace

bool IdleMemory::IsDue(uint64_t now_ns) const {
  if (look_)
    return look_->occasion == Occasion::kBetween;
  const uint64_t last = looked_ns_ != 0 ? looked_ns_ - started_ns_ : kFirstLookNs / 2;
  return looks_between_ && now_ns >= started_ns_ + 2 * last;
}

bool IdleMemory::Look(const LiveHeap& heap,
                      Occasion occasion,
                      uint64_t now_ns,
                      uint64_t end_ns) {
  if (!look_) {
    if (occasion == Occasion::kEnd && last_ns_ == 0)
      return true;  // there is nothing to find, and nobody who would later
    look_ = std::make_unique<Looking>();
    look_->blocks = ChosenBlocks(heap, secret_);
    step_ = Step::kChoose;
  }
  look_->occasion = occasion;
  if (step_ == Step::kChoose && !Choose(heap, now_ns, end_ns))
    return false;
  if (step_ == Step::kLook) {
    const auto look = [this](size_t first, size_t count) { return LookAt(first, count); };
    if (!ThroughPages(kLookNs, end_ns, look))
      return false;
    if (look_->is_gone)
      return End(now_ns);
    if (last_ns_ != 0)
      found_ = Sum(now_ns);
    Begin(Step::kMark);
  }
  if (!MayMark(now_ns))
    return End(now_ns);
  const auto mark = [this](size_t first, size_t count) {
    return MarkTouched(first, count);
  };
  if (!ThroughPages(kMarkNs, end_ns, mark))
    return false;
  KeepMarks(now_ns);
  return End(now_ns);
}

bool IdleMemory::Choose(const LiveHeap& heap, uint64_t now_ns, uint64_t end_ns) {
  if (!look_->blocks.Choose(heap, now_ns, end_ns))
    return false;
  look_->pages = look_->blocks.Pages();
  look_->marks = MarksOf(look_->pages);
  look_->looked.resize(look_->pages.size());
  Begin(Step::kLook);
  return true;
}

void IdleMemory::Begin(Step step) {
  step_ = step;
  look_->at = 0;
  look_->spent_ns = 0;
}

// False: there is more to do, and time for it later. `do_some` gives how many pages it
// has come to the end of; 0: there is no going on.
template <typename DoSome>
bool IdleMemory::ThroughPages(uint64_t most_ns, uint64_t end_ns, DoSome do_some) {
  Looking& look = *look_;
  while (look.at < look.pages.size() && look.spent_ns < most_ns) {
    const size_t count =
        do_some(look.at, std::min(IdlePages::kTogether, look.pages.size() - look.at));
    look.at += count;
    if (count == 0)
      return true;
    if (MonotonicNs() >= end_ns && look.at < look.pages.size())
      return look.spent_ns >= most_ns;
  }
  return true;
}

size_t IdleMemory::LookAt(size_t first, size_t count) {
  const IdlePages::Looked looked =
      pages_.Look(std::span(look_->pages).subspan(first, count),
                  std::span(look_->looked).subspan(first, count));
  look_->is_late = looked.state == IdlePages::State::kLate;
  look_->is_gone = looked.state == IdlePages::State::kGone;
  look_->spent_ns += looked.cpu_ns;
  return looked.count;
}

// Pages that are idle, and were marked by us, keep their mark.
size_t IdleMemory::MarkTouched(size_t first, size_t count) {
  std::vector<uint64_t> frames;
  for (size_t i = first; i < first + count; ++i) {
    const IdlePages::Page page = look_->looked[i];
    Marked& mark = look_->marks[i];
    if (page.frame == 0) {
      mark = Marked::kNot;
    } else if (page.is_idle != 0 && mark != Marked::kNot) {
      mark = Marked::kBefore;
    } else {
      mark = mark == Marked::kNot ? Marked::kFirst : Marked::kAgain;
      frames.push_back(page.frame);
    }
  }
  const IdlePages::Looked marked = pages_.Mark(frames);
  look_->spent_ns += marked.cpu_ns;
  if (marked.state == IdlePages::State::kSeen)
    return count;
  for (size_t i = first; i < first + count; ++i) {
    Marked& mark = look_->marks[i];
    mark = mark == Marked::kBefore ? mark : Marked::kNot;
  }
  return count;
}

bool IdleMemory::MayMark(uint64_t now_ns) const {
  return look_->occasion != Occasion::kEnd && !look_->is_late &&
         (last_ns_ == 0 || now_ns - last_ns_ >= kYoungMarkNs);
}

// What was not reached has no mark.
void IdleMemory::KeepMarks(uint64_t now_ns) {
  std::fill(look_->marks.begin() + static_cast<ptrdiff_t>(look_->at), look_->marks.end(),
            Marked::kNot);
  marks_ = {.pages = std::move(look_->pages), .of = std::move(look_->marks)};
  before_ns_ = std::exchange(last_ns_, now_ns);
}

bool IdleMemory::End(uint64_t now_ns) {
  look_.reset();
  looked_ns_ = now_ns;
  return true;
}

std::vector<IdleMemory::Marked> IdleMemory::MarksOf(
    std::span<const uint64_t> pages) const {
  std::vector<Marked> marks(pages.size(), Marked::kNot);
  size_t at = 0;
  for (size_t i = 0; i < pages.size(); ++i) {
    while (at < marks_.pages.size() && marks_.pages[at] < pages[i])
      ++at;
    if (at < marks_.pages.size() && marks_.pages[at] == pages[i])
      marks[i] = marks_.of[at];
  }
  return marks;
}

// Whether it is known of a page that was there to look at if it was touched since the
// last mark, or since the one before.
bool IdleMemory::IsKnown(Marked mark, bool by_last) {
  return mark != Marked::kNot && (by_last || mark != Marked::kFirst);
}

// The same, and that a page that nobody has touched since its own mark was not.
bool IdleMemory::IsIdle(Marked mark, bool by_last) {
  return mark == Marked::kBefore || (by_last && mark != Marked::kNot);
}

IdleBlocks IdleMemory::Sum(uint64_t now_ns) const {
  // A mark of a moment ago says little where there is one that is much older.
  const bool by_last = before_ns_ == 0 || now_ns - last_ns_ >= (now_ns - before_ns_) / 4;
  IdleBlocks sum{.was_asked_for = true,
                 .since_ns = by_last ? last_ns_ : before_ns_,
                 .until_ns = now_ns,
                 .unseen_bytes = look_->blocks.left_out_bytes()};
  std::vector<std::pair<CallsiteId, double>> idle;
  size_t first = 0;  // that blocks from this one on may lie on
  for (const ChosenBlock& block : look_->blocks.blocks()) {
    if (block.born_ns >= sum.since_ns)
      continue;
    uint64_t idle_bytes = 0;
    uint64_t unseen_bytes = block.size;
    while (first < look_->pages.size() &&
           (look_->pages[first] + 1) * PageSize() <= block.address)
      ++first;
    for (size_t i = first;
         i < look_->pages.size() && look_->pages[i] * PageSize() < block.end(); ++i) {
      const IdlePages::Page page = look_->looked[i];
      const Marked mark = page.frame != 0 ? look_->marks[i] : Marked::kNot;
      const uint64_t share = ShareOf(block, look_->pages[i]);
      unseen_bytes -= IsKnown(mark, by_last) ? share : 0;
      idle_bytes += page.is_idle != 0 && IsIdle(mark, by_last) ? share : 0;
    }
    const double weight = block.bytes / static_cast<double>(block.size);
    sum.unseen_bytes += weight * static_cast<double>(unseen_bytes);
    if (idle_bytes > 0)
      idle.emplace_back(block.callsite, weight * static_cast<double>(idle_bytes));
  }
  std::ranges::stable_sort(idle, {}, &std::pair<CallsiteId, double>::first);
  for (size_t i = 0; i < idle.size();) {
    const CallsiteId callsite = idle[i].first;
    Estimate estimate;
    for (; i < idle.size() && idle[i].first == callsite; ++i)
      estimate.bytes += idle[i].second;
    sum.callsites.emplace(callsite, estimate);
  }
  return sum;
}

// A look may take all of it before it is asked again.
size_t IdleMemory::bytes() const {
  return marks_.pages.capacity() * sizeof(uint64_t) + marks_.of.capacity() +
         found_.callsites.bytes() + (look_ ? kMaxBytes : 0);
}

}  // namespace heapprofd
