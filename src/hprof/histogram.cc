#include "hprof/histogram.h"

#include <algorithm>
#include <tuple>

#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

uint64_t ClassObjectsBytes(const HeapCensus& census) {
  uint64_t bytes = 0;
  for (uint32_t row = 0; row < census.classes.size(); ++row) {
    if (census.classes[row].is_dumped)
      bytes += census.classes.ClassObjectBytes(row, census.class_class, census.layout);
  }
  return bytes;
}

}  // namespace

std::string PrimitiveArrayName(uint8_t type) {
  constexpr const char* kNames[kBasicTypeCount] = {
      "",        "",         "",       "",        "boolean[]", "char[]",
      "float[]", "double[]", "byte[]", "short[]", "int[]",     "long[]"};
  return kNames[type];
}

std::vector<HistogramRow> MakeHistogram(const DumpFile& file, const HeapCensus& census) {
  std::vector<HistogramRow> rows;
  const ClassTable& classes = census.classes;
  for (uint32_t row = 0; row < classes.size(); ++row) {
    const HeapClass& type = classes[row];
    if (type.instances + type.arrays.count > 0)
      rows.push_back({file.names().ClassName(type.id), type.instances + type.arrays.count,
                      type.instances * classes.InstanceBytes(row, census.layout) +
                          type.arrays.Bytes(true, census.layout)});
  }
  for (uint8_t type = 0; type < kBasicTypeCount; ++type) {
    const ArrayFigures& arrays = census.primitive_arrays[type];
    if (arrays.count > 0)
      rows.push_back(
          {PrimitiveArrayName(type), arrays.count, arrays.Bytes(false, census.layout)});
  }
  if (census.class_objects > 0)
    rows.push_back(
        {std::string(kClassClass), census.class_objects, ClassObjectsBytes(census)});
  return SumByName(std::move(rows));
}

std::vector<HistogramRow> SumByName(std::vector<HistogramRow> rows) {
  std::sort(rows.begin(), rows.end(),
            [](const HistogramRow& a, const HistogramRow& b) { return a.name < b.name; });
  std::vector<HistogramRow> sums;
  for (HistogramRow& row : rows) {
    if (sums.empty() || sums.back().name != row.name) {
      sums.push_back(std::move(row));
    } else {
      sums.back().objects += row.objects;
      sums.back().bytes += row.bytes;
    }
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const HistogramRow& a, const HistogramRow& b) {
                     return std::tie(a.bytes, a.objects) > std::tie(b.bytes, b.objects);
                   });
  return sums;
}

}  // namespace heapprofd::hprof
