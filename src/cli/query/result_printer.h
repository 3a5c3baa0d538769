// Results of queries as text: a table for people, CSV in the form of Perfetto's tools,
// JSON for programs. Reals are the shortest texts that are read back as the same numbers.
#pragma once

#include <cstdio>
#include <memory>

#include "query/trace_database.h"

namespace heapprofd {

enum class ResultFormat : uint8_t {
  kTable,         // aligned columns
  kCsv,           // header and texts quoted, NULL is "[NULL]"
  kPerfettosCsv,  // the same, and reals have six decimals
  kJson,          // per statement one array of objects
};

// Writes to `output`, which must outlive the printer.
std::unique_ptr<ResultSink> MakeResultPrinter(ResultFormat format, FILE* output);

}  // namespace heapprofd
