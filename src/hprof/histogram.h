// How many objects of each class a heap dump has, and their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hprof/census.h"

namespace heapprofd::hprof {

struct HistogramRow {
  std::string name;  // as the language writes it
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

// "byte[]"
std::string PrimitiveArrayName(uint8_t type);

// Largest first. Classes without objects are left out; those of one name, which different
// loaders have loaded, are one row.
std::vector<HistogramRow> MakeHistogram(const DumpFile& file, const HeapCensus& census);

std::vector<HistogramRow> SumByName(std::vector<HistogramRow> rows);

}  // namespace heapprofd::hprof
