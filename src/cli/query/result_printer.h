// Results of queries as text: a table for people, CSV in the form of Perfetto's tools,
// JSON for programs.
#pragma once

#include <cstdio>
#include <memory>

#include "query/trace_database.h"

namespace heapprofd {

enum class ResultFormat : uint8_t {
  kTable,  // aligned columns
  kCsv,    // header and texts quoted, NULL is "[NULL]"
  kJson,   // per statement one array of objects
};

// Writes to `output`, which must outlive the printer.
std::unique_ptr<ResultSink> MakeResultPrinter(ResultFormat format, FILE* output);

}  // namespace heapprofd
