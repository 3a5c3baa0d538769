// Between which values a sum over all allocations lies, as far as samples and exact
// counts can tell: what is shown of an estimate, and what no estimate may exceed. Why
// these limits: docs/design/peak.md.
#pragma once

#include <cstdint>

#include "profile/model.h"

namespace heapprofd {

// 97.5 % of a normal distribution: so many standard errors are half of a 95 % interval.
inline constexpr double kNormalQuantile = 1.96;

// 95 % limits of one sum of samples that were taken at `interval` bytes: exact ones of a
// Poisson variable (Garwood) with the sum's variance and the weight `interval`, so that a
// sum without any sample has an upper limit, too: 3.7 intervals. `interval` is the one in
// force; earlier samples may have been taken at a smaller one. The lower limit may be
// negative. At an interval of 1 both are the sum itself.
double LowerLimit(const Estimate& sum, uint64_t interval);
double UpperLimit(const Estimate& sum, uint64_t interval);

// What is live in several heaps together. What exact counts allow is applied to the sum:
// each heap's estimate cut by its own counts would err downwards, and the more heaps the
// more.
class LiveSum {
 public:
  void Add(const HeapDump& dump);

  // Children without a sample have no heap: what they allocated may be live, and what
  // samples of other children stand for may be theirs.
  void AddUnsampled(const ForkedChildren& children);

  BoundedBytes Total() const;  // whole bytes

  // Of the unbounded sum, bytes.
  double standard_error() const;

 private:
  Estimate live_;
  double certain_ = 0;
  double possible_ = 0;
  double unsampled_ = 0;
  uint64_t interval_ = 1;  // the largest
};

// What is live at the dump: the sum over its callsites within what exact counts allow.
BoundedBytes LiveTotal(const HeapDump& dump);

// True if the file does not give the heap's peak: none that is known is less than what is
// live.
bool LacksPeak(const HeapDump& dump);

// Bytes that nobody has touched lately (HeapDump::idle): the sum over the callsites, and
// what of it LiveTotal allows.
double IdleSum(const HeapDump& dump);
double IdleTotal(const HeapDump& dump);

// What was ever allocated: counted by the recorder, else the sum over the callsites.
Estimate AllocatedTotal(const HeapDump& dump);

// Of estimates that may all err in the same direction: the limits add up.
BoundedBytes SumOf(const BoundedBytes& a, const BoundedBytes& b);

}  // namespace heapprofd
