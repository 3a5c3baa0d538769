#include "client/sampler.h"

#include <algorithm>
#include <array>

namespace heapprofd {
namespace {

constexpr unsigned kTableBits = 8;
constexpr unsigned kTableSize = 1u << kTableBits;

// log2(x) for x in [1, 2], by repeated squaring: each squaring yields one binary digit.
constexpr double Log2(double x) {
  double result = 0;
  double digit = 1;
  while (digit > 1e-17) {
    if (x >= 2) {
      x /= 2;
      result += digit;
    }
    x *= x;
    digit /= 2;
  }
  return result;
}

// log2(1 + i/256) in units of 2^-32.
constexpr std::array<uint64_t, kTableSize + 1> MakeTable() {
  std::array<uint64_t, kTableSize + 1> table{};
  for (unsigned i = 0; i <= kTableSize; ++i) {
    const double units = Log2(1.0 + static_cast<double>(i) / kTableSize) * 4294967296.0;
    // lround is not constexpr; the value is positive.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    table[i] = static_cast<uint64_t>(units + 0.5);
  }
  table[kTableSize] = uint64_t{1} << 32;
  return table;
}

constexpr std::array<uint64_t, kTableSize + 1> kLog2Table = MakeTable();
constexpr uint64_t kLn2 = 2977044472;  // ln(2) in units of 2^-32
constexpr uint64_t kMaxCountdown = uint64_t{1} << 60;

}  // namespace

uint64_t ExponentialCountdown(uint64_t interval, uint64_t random) {
  random |= 1;  // 0 has no logarithm; the bit is far below the table's resolution
  const auto zeros = static_cast<unsigned>(__builtin_clzll(random));
  const uint64_t mantissa = random << zeros;  // 1.xxx with the leading 1 in bit 63
  const auto index =
      static_cast<unsigned>(mantissa >> (63 - kTableBits)) & (kTableSize - 1);
  const uint64_t rest =
      mantissa >> (31 - kTableBits) & 0xffffffff;  // between two entries, 2^-32
  const uint64_t low = kLog2Table[index];
  const uint64_t log2 = low + ((kLog2Table[index + 1] - low) * rest >> 32);
  // -log2(u) for u = random / 2^64, in units of 2^-32.
  const uint64_t minus_log2 = (uint64_t{zeros + 1} << 32) - log2;
  __extension__ using Wide = unsigned __int128;
  const Wide natural = Wide{minus_log2} * kLn2 >> 32;  // -ln(u), units of 2^-32
  const Wide bytes = natural * interval >> 32;
  return static_cast<uint64_t>(std::min(bytes, Wide{kMaxCountdown})) + 1;
}

uint64_t NextRandom(uint64_t* state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * 0x2545f4914f6cdd1du;
}

namespace {

// Sets the remaining countdown to `left` bytes (>= 1); `spent` bytes were allocated
// meanwhile.
void SetCountdown(ThreadSlot& slot, uint64_t left, uint64_t spent) {
  const uint64_t total = slot.granted - slot.bytes_left + spent;
  const uint64_t chunk = std::min(left, slot.interval);
  slot.reserve = left - chunk;
  slot.bytes_left = chunk;
  slot.granted = total + chunk;
}

}  // namespace

void RestartCountdown(ThreadSlot& slot, uint64_t interval) {
  slot.interval = interval;
  SetCountdown(slot, ExponentialCountdown(interval, NextRandom(&slot.random)), 0);
}

SampleDecision CountDown(ThreadSlot& slot, uint64_t size, uint64_t interval) {
  ++slot.calls;
  const uint64_t left = slot.bytes_left + slot.reserve;
  SampleDecision decision = SampleDecision::kSkip;
  if (size >= slot.interval) {
    slot.granted += size;  // recorded exactly; the countdown of the smaller ones goes on
    decision = SampleDecision::kSample;
  } else if (size >= left) {
    SetCountdown(slot, ExponentialCountdown(slot.interval, NextRandom(&slot.random)),
                 size);
    decision = SampleDecision::kSample;
  } else {
    SetCountdown(slot, left - size, size);
  }
  if (slot.interval != interval)
    RestartCountdown(slot, interval);
  return decision;
}

}  // namespace heapprofd
