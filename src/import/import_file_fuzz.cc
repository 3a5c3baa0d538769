// Arbitrary bytes as a file of any format: nothing may crash, hang or read outside.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "import/import_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::ImportedTrace trace;
  heapprofd::TraceBuilder builder(&trace);
  heapprofd::MemorySource source(
      std::string_view(reinterpret_cast<const char*>(data), size));  // NOLINT
  const auto report = heapprofd::ImportBytes(source, "input", builder);
  // Callers come first and every row has its frame: what queries rely on.
  for (size_t row = 0; row < trace.callsites.row_count(); ++row) {
    const uint32_t parent = trace.callsites.parent[row];
    if ((parent != heapprofd::kNoId && parent >= row) ||
        trace.callsites.frame[row] >= trace.frames.row_count())
      __builtin_trap();
  }
  return report.ok() ? 0 : 0;
}
