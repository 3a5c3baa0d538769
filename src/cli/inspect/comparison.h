// Two heaps compared, as the report's page Compare does: what grew and what shrank from A
// to B, and what of that may be the sampling error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/inspect/figures.h"
#include "cli/inspect/opened_file.h"
#include "cli/results/top_list.h"

namespace heapprofd {

// Of whose heaps one is chosen; any process's where nothing is said.
struct ProcessChoice {
  std::optional<uint64_t> pid = {};
  std::optional<uint64_t> upid = {};
};

// The heap of the file that was largest, of those named `heap_name` if there are any.
ChosenHeap LargestHeap(const OpenedFile& file,
                       const std::string& heap_name,
                       const ProcessChoice& choice = {});

struct HeapPair {
  ChosenHeap a;
  ChosenHeap b;
};

// Of the heaps whose name both have the one that is largest in A, and the largest of that
// name in B. The largest ones where a file does not tell what its heap is called; nullopt:
// no name is in both.
std::optional<HeapPair> ComparableHeaps(const OpenedFile& a, const OpenedFile& b);

// "libc.malloc, com.example.arena", for messages.
std::string HeapNamesOf(const OpenedFile& file);

struct FigureChange {
  HeapFigure a;
  HeapFigure b;
  BoundedBytes change;  // b - a

  bool IsKnown() const { return a.is_known && b.is_known; }

  bool HasLimits() const { return a.has_limits && b.has_limits; }

  bool IsIncomplete() const { return a.is_incomplete || b.is_incomplete; }

  // The change may be the sampling error alone (95 %).
  bool IsNoise() const;
};

// What a function holds: the first, from the allocation outward, that is no allocator's
// or container's own.
struct FunctionChange {
  StackFunction function;
  double a = 0;  // live bytes
  double b = 0;
  double error = 0;  // half of the 95 % interval of b - a

  bool IsNoise() const;
};

struct Comparison {
  std::vector<FigureChange> figures;
  std::vector<FunctionChange> functions;  // those that changed, the most first
  bool tells_functions = true;            // false: not what functions hold in both
  bool error_is_known = false;
};

Comparison Compare(const ChosenHeap& a, const ChosenHeap& b);

}  // namespace heapprofd
