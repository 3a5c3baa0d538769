// The peak of known programs, recorded again and again: the limits hold the truth, and
// the mean is not that of a maximum of noisy sums.
#include "profile/peak_estimator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "profile/estimate.h"
#include "profile/limits.h"
#include "profile/live_heap.h"

namespace heapprofd {
namespace {

constexpr double kTop = 428 << 10;  // bytes

enum class Order : uint8_t { kOldestFirst, kNewestFirst, kAny };

// A program that was run once: its blocks, and in which order they came and went.
class Program {
 public:
  struct Event {
    size_t block;
    bool is_free;
  };

  void AllocateUpTo(double bytes) {
    while (live_bytes_ < bytes)
      Allocate(kSizes[random_() % std::size(kSizes)]);
  }

  size_t Allocate(uint64_t size) {
    sizes_.push_back(size);
    events_.push_back({sizes_.size() - 1, false});
    live_.push_back(sizes_.size() - 1);
    live_bytes_ += static_cast<double>(size);
    total_ += size;
    peak_ = std::max(peak_, live_bytes_);
    return sizes_.size() - 1;
  }

  void FreeDownTo(double bytes, Order order) {
    while (live_bytes_ > bytes && !live_.empty())
      Free(order);
  }

  const std::vector<uint64_t>& sizes() const { return sizes_; }

  const std::vector<Event>& events() const { return events_; }

  double peak() const { return peak_; }

  double live() const { return live_bytes_; }

  uint64_t total() const { return total_; }

  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

 private:
  static constexpr uint64_t kSizes[] = {16, 32, 64, 100, 200, 500, 1000, 2000};

  void Free(Order order) {
    const size_t at = order == Order::kOldestFirst   ? 0
                      : order == Order::kNewestFirst ? live_.size() - 1
                                                     : random_() % live_.size();
    if (at != 0)
      std::swap(live_[at], live_.back());
    const size_t block = at == 0 ? live_.front() : live_.back();
    at == 0 ? live_.pop_front() : live_.pop_back();
    events_.push_back({block, true});
    live_bytes_ -= static_cast<double>(sizes_[block]);
  }

  std::mt19937_64 random_{7};
  std::vector<uint64_t> sizes_;
  std::vector<Event> events_;
  std::deque<size_t> live_;
  double live_bytes_ = 0;
  double peak_ = 0;
  uint64_t total_ = 0;
};

struct Recording {
  HeapDump dump;
  double highest_sum =
      0;  // what was shown as the peak before there was an estimate of it
};

Recording Record(const Program& program, uint64_t interval, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  LiveHeap heap(random());
  Recording recording;
  std::vector<bool> is_sampled(program.sizes().size());
  for (const Program::Event& event : program.events()) {
    const uint64_t size = program.sizes()[event.block];
    if (event.is_free) {
      if (is_sampled[event.block])
        heap.Free(16 + event.block);
    } else if (uniform(random) < SamplingProbability(size, interval)) {
      is_sampled[event.block] = true;
      heap.Allocate({.address = 16 + event.block, .size = size, .interval = interval}, 1);
      recording.highest_sum = std::max(recording.highest_sum, heap.total().live().bytes);
    }
  }
  recording.dump.sampling_interval = interval;
  recording.dump.exact_alloc_calls = program.sizes().size();
  recording.dump.exact_alloc_bytes = program.total();
  heap.Snapshot(&recording.dump);
  return recording;
}

bool Holds(const BoundedBytes& figure, double truth) {
  return figure.low <= truth + 1 && figure.high >= truth - 1;
}

void ExpectConsistent(const HeapDump& dump) {
  double callsites = 0;
  for (const auto& [id, estimate] : dump.peak)
    callsites += estimate.bytes;
  EXPECT_LE(callsites, dump.peak_total.bytes + 1e-3);
  EXPECT_LE(dump.peak_total.low, dump.peak_total.bytes);
  EXPECT_LE(dump.peak_total.bytes, dump.peak_total.high);
  EXPECT_LE(dump.peak_total.high, static_cast<double>(dump.exact_alloc_bytes) + 1);
}

struct Shape {
  const char* name;
  // Most that the mean estimate may err by, in standard deviations of one recording.
  double bias;
  std::function<void(Program&)> run;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.name;
}

class PeakOfShapeTest : public testing::TestWithParam<Shape> {};

TEST_P(PeakOfShapeTest, IsWithinItsLimitsAndNotTheHighestSum) {
  Program program;
  GetParam().run(program);
  constexpr int kRecordings = 200;
  std::mt19937_64 random(11);
  for (const uint64_t interval : {1u << 12, 1u << 16, 1u << 19}) {
    double estimates = 0;
    double highest_sums = 0;
    int peak_within = 0;
    int live_within = 0;
    for (int i = 0; i < kRecordings; ++i) {
      const Recording recording = Record(program, interval, random);
      ExpectConsistent(recording.dump);
      estimates += recording.dump.peak_total.bytes;
      highest_sums += recording.highest_sum;
      peak_within += Holds(recording.dump.peak_total, program.peak()) ? 1 : 0;
      live_within += Holds(LiveTotal(recording.dump), program.live()) ? 1 : 0;
    }
    const double error = estimates / kRecordings / program.peak() - 1;
    // The rows of the table in docs/design/peak.md.
    printf("| %s | %llu | %+.0f %% | %+.0f %% | %.0f %% | %.0f %% |\n", GetParam().name,
           static_cast<unsigned long long>(interval),
           100 * (highest_sums / kRecordings / program.peak() - 1), 100 * error,
           100.0 * peak_within / kRecordings, 100.0 * live_within / kRecordings);
    EXPECT_GE(peak_within, kRecordings * 0.93) << interval;
    EXPECT_GE(live_within, kRecordings * 0.93) << interval;
    const double deviation = std::sqrt(static_cast<double>(interval) / program.peak());
    EXPECT_LT(std::abs(error), GetParam().bias * deviation) << interval;
  }
}

const Shape kShapes[] = {
    {"Ramp", 0.6,
     [](Program& program) {
       program.AllocateUpTo(kTop);
       program.FreeDownTo(0, Order::kOldestFirst);
     }},
    {"Leak", 0.6, [](Program& program) { program.AllocateUpTo(kTop); }},
    {"SawTooth", 0.3,
     [](Program& program) {
       for (int i = 0; i < 20; ++i) {
         program.AllocateUpTo(kTop);
         program.FreeDownTo(0, static_cast<Order>(i % 3));
       }
     }},
    {"Plateau", 0.4,
     [](Program& program) {
       for (int i = 0; i < 10'000; ++i) {
         program.AllocateUpTo(kTop);
         program.FreeDownTo(kTop - 1000, Order::kAny);
       }
       program.FreeDownTo(0, Order::kAny);
     }},
    {"UpsAndDowns", 0.5,
     [](Program& program) {
       for (int i = 0; i < 200; ++i) {
         const double level = i == 120 ? kTop : kTop * (0.6 + 0.4 * program.Uniform());
         program.AllocateUpTo(level);
         program.FreeDownTo(level, Order::kAny);
       }
       program.FreeDownTo(0, Order::kAny);
     }},
    {"Spike", 1,
     [](Program& program) {
       for (int i = 0; i < 100; ++i) {
         const double level = i == 60 ? kTop : kTop * (0.2 + 0.1 * program.Uniform());
         program.AllocateUpTo(level);
         program.FreeDownTo(level, Order::kAny);
       }
       program.FreeDownTo(0, Order::kAny);
     }},
    {"BlocksOfAllSizes", 0.3,
     [](Program& program) {
       for (int i = 0; i < 50; ++i) {
         program.Allocate(static_cast<uint64_t>(kTop / 2));
         program.AllocateUpTo(kTop);
         program.FreeDownTo(kTop / 4, Order::kAny);
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Shapes,
                         PeakOfShapeTest,
                         testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST(PeakEstimatorTest, WhatIsCertainIsExact) {
  PeakEstimator peak(1);
  EXPECT_EQ(peak.Allocate(100, 1), 0);
  EXPECT_EQ(peak.Allocate(50, 50), 0);
  peak.Free(100, 1, 0);
  EXPECT_EQ(peak.Allocate(20, 1), 0);
  EXPECT_EQ(peak.Value().bytes, 150);
  EXPECT_EQ(peak.Value().bytes_variance, 0);
  EXPECT_EQ(peak.certain_live(), 70);
  EXPECT_EQ(peak.certain_peak(), 150);
  EXPECT_EQ(peak.certain_allocated(), 170);
}

TEST(PeakEstimatorTest, ABlockThatReturnsIsNotAllocatedAgain) {
  PeakEstimator peak(1);
  peak.Free(100, 1, peak.Allocate(100, 1));
  peak.Return(100, 1, 0);
  EXPECT_EQ(peak.certain_live(), 100);
  EXPECT_EQ(peak.certain_allocated(), 100);
}

// One half has no sample yet, the other one tells what there is.
TEST(PeakEstimatorTest, TheFirstSampleCounts) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    PeakEstimator peak(seed << 56);
    const PeakEstimator::Halves halves = peak.Allocate(1 << 10, 1 << 20);
    EXPECT_GT(peak.Value().bytes, 1 << 19) << int{halves};
  }
}

// Only what is sampled is scaled to the total.
TEST(PeakEstimatorTest, CallsitesKeepWhatIsCertainOfThem) {
  std::mt19937_64 random(3);
  for (int recording = 0; recording < 20; ++recording) {
    LiveHeap heap(random());
    heap.Allocate({.address = 1, .size = 1 << 20, .interval = 4096, .callsite = 0}, 1);
    for (uint64_t i = 2; i < 2000; ++i) {
      heap.Allocate({.address = i, .size = 100, .interval = 4096, .callsite = 1}, i);
      if (i > 30)
        heap.Free(2 + random() % (i - 2));
    }
    HeapDump dump;
    dump.sampling_interval = 4096;
    heap.Snapshot(&dump);
    EXPECT_EQ(dump.peak.at(0).bytes, 1 << 20);
    EXPECT_EQ(dump.peak.at(0).count, 1);
    EXPECT_NEAR(dump.peak.at(0).bytes + dump.peak.at(1).bytes, dump.peak_total.bytes, 1);
    EXPECT_GE(dump.peak_total.low, 1 << 20);
  }
}

}  // namespace
}  // namespace heapprofd
