// Between which values a sum over all allocations lies, as far as samples and exact
// counts can tell: what is shown of an estimate, and what no estimate may exceed. Why
// these limits: docs/design/peak.md.
#pragma once

#include <cstdint>

#include "profile/model.h"

namespace heapprofd {

// 95 % limits of one sum of samples that were taken at `interval` bytes: exact ones of a
// Poisson variable (Garwood) with the sum's variance and the weight `interval`, so that a
// sum without any sample has an upper limit, too: 3.7 intervals. The lower one may be
// negative. At an interval of 1 both are the sum itself.
double LowerLimit(const Estimate& sum, uint64_t interval);
double UpperLimit(const Estimate& sum, uint64_t interval);

// What is live at the dump: the sum over its callsites within what exact counts allow.
BoundedBytes LiveTotal(const HeapDump& dump);

// Sum over heaps that were sampled independently of each other.
BoundedBytes SumOf(const BoundedBytes& a, const BoundedBytes& b);

}  // namespace heapprofd
