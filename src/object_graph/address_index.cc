#include "object_graph/address_index.h"

namespace heapprofd {
namespace {

constexpr uint32_t kBlockShift = 20;  // ranges consist of blocks of 1 MiB
constexpr size_t kFreeWords = 4096;
constexpr size_t kMaxRanges = 32;

}  // namespace

AddressIndex::AddressIndex(const Column<uint64_t>& ids) {
  MakeRanges(ids);
  size_t words = 0;
  for (Range& range : ranges_) {
    range.first_word = words;
    words += (range.bytes >> shift_) / 64 + 1;
  }
  // Sorted they would take 8 bytes each.
  if (ranges_.size() <= kMaxRanges &&
      words * sizeof(Word) / 12 <= ids.size() + kFreeWords) {
    own_words_.ReserveForRandomAccess(words);
    own_words_.resize(words, Word{});
    SetBits(ids);
    words_ = own_words_.span();
  } else {
    Sort(ids);
  }
}

AddressIndex::AddressIndex(const Parts& parts)
    : size_(parts.size),
      shift_(std::min(parts.shift, kBlockShift)),
      words_(parts.words),
      sorted_(parts.sorted.first(std::min<size_t>(parts.sorted.size(), parts.size))) {
  for (const Range& range :
       parts.ranges.first(std::min(parts.ranges.size(), kMaxRanges))) {
    const uint64_t words = (range.bytes >> shift_) / 64 + 1;
    if (range.first_word <= words_.size() && words <= words_.size() - range.first_word)
      ranges_.push_back(range);
  }
}

void AddressIndex::MakeRanges(const Column<uint64_t>& ids) {
  std::vector<uint64_t> blocks;
  size_t next_cleaning = 1 << 16;
  uint64_t all_bits = uint64_t{1} << kBlockShift;
  for (const uint64_t id : ids) {
    all_bits |= id;
    if (blocks.empty() || blocks.back() != id >> kBlockShift)
      blocks.push_back(id >> kBlockShift);
    if (blocks.size() >= next_cleaning) {
      std::sort(blocks.begin(), blocks.end());
      blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
      next_cleaning = std::max(next_cleaning, blocks.size() * 2);
    }
  }
  shift_ = static_cast<uint32_t>(__builtin_ctzll(all_bits));
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  constexpr uint64_t kNear = 64;  // blocks: a gap of these is cheaper than a range
  for (const uint64_t block : blocks) {
    const uint64_t begin = block << kBlockShift;
    if (ranges_.empty() ||
        begin - ranges_.back().begin > ranges_.back().bytes + (kNear << kBlockShift))
      ranges_.push_back({begin, 0, 0});
    ranges_.back().bytes = begin - ranges_.back().begin + (uint64_t{1} << kBlockShift);
  }
}

void AddressIndex::SetBits(const Column<uint64_t>& ids) {
  const Range* range = nullptr;
  for (const uint64_t id : ids) {
    if (range == nullptr || id - range->begin >= range->bytes)
      range = &*std::find_if(ranges_.begin(), ranges_.end(),
                             [id](const Range& r) { return id - r.begin < r.bytes; });
    const uint64_t place = (id - range->begin) >> shift_;
    own_words_[range->first_word + place / 64].bits[place % 64 / 32] |= 1u
                                                                        << (place % 32);
  }
  uint64_t count = 0;
  for (Word& word : own_words_) {
    word.before = static_cast<uint32_t>(count);
    count += static_cast<uint32_t>(__builtin_popcount(word.bits[0]) +
                                   __builtin_popcount(word.bits[1]));
  }
  size_ = static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
}

void AddressIndex::Sort(const Column<uint64_t>& ids) {
  ranges_ = std::vector<Range>();  // of scattered ids they take more than the ids
  own_sorted_.append(ids.span());
  std::sort(own_sorted_.begin(), own_sorted_.end());
  const uint64_t* const end = std::unique(own_sorted_.begin(), own_sorted_.end());
  own_sorted_.resize(static_cast<size_t>(end - own_sorted_.begin()), 0);
  sorted_ = own_sorted_.span();
  size_ = static_cast<uint32_t>(std::min<uint64_t>(sorted_.size(), UINT32_MAX));
}

uint32_t AddressIndex::FindSorted(uint64_t id) const {
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), id);
  return found != sorted_.end() && *found == id
             ? static_cast<uint32_t>(found - sorted_.begin())
             : kNoObject;
}

uint64_t AddressIndex::IdOf(uint32_t object) const {
  if (!sorted_.empty())
    return object < sorted_.size() ? sorted_[object] : 0;
  const auto behind =
      std::upper_bound(words_.begin(), words_.end(), object,
                       [](uint32_t number, const Word& w) { return number < w.before; });
  if (behind == words_.begin())
    return 0;
  const Word& word = *(behind - 1);
  const auto at = static_cast<size_t>(behind - 1 - words_.begin());
  const auto range = std::find_if(ranges_.rbegin(), ranges_.rend(),
                                  [at](const Range& r) { return r.first_word <= at; });
  uint64_t bits = uint64_t{word.bits[1]} << 32 | word.bits[0];
  for (uint32_t i = word.before; i < object && bits != 0; ++i)
    bits &= bits - 1;
  if (bits == 0 || range == ranges_.rend())
    return 0;
  const uint64_t place =
      (at - range->first_word) * 64 + static_cast<uint64_t>(__builtin_ctzll(bits));
  return range->begin + (place << shift_);
}

}  // namespace heapprofd
