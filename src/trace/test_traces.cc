#include "trace/test_traces.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "trace/text_format.h"

namespace heapprofd {

std::string TestTrace::Stack(uint32_t callsite) const {
  std::string text;
  for (uint32_t at = callsite; at != kNoId; at = trace.callsites.parent[at]) {
    const std::string name(trace.Text(trace.frames.name[trace.callsites.frame[at]]));
    text = name + (text.empty() ? "" : ";") + text;
  }
  return text;
}

std::string TestTrace::Allocations() const {
  std::ostringstream text;
  const AllocationTable& rows = trace.allocations;
  for (size_t row = 0; row < rows.row_count(); ++row) {
    const ImportedDump& dump = trace.dumps[rows.dump[row]];
    text << dump.ts << " " << trace.processes[dump.upid].pid << " "
         << trace.Text(dump.heap_name) << " " << Stack(rows.callsite[row]) << " "
         << rows.count[row] << " " << rows.size[row] << "\n";
  }
  return text.str();
}

std::string FixtureBytes(const std::string& name) {
  std::ifstream file(std::string(HPD_TEST_TRACES) + "/" + name + ".textproto");
  HPD_CHECK(file.good());
  std::stringstream text;
  text << file.rdbuf();
  Result<std::string> bytes = TraceTextFormat().TraceFromText(text.str());
  if (!bytes.ok())
    fprintf(stderr, "%s: %s\n", name.c_str(), bytes.status().message().c_str());
  HPD_CHECK(bytes.ok());
  return std::move(bytes).value();
}

std::unique_ptr<TestTrace> ReadBytes(const std::string& bytes) {
  auto test = std::make_unique<TestTrace>();
  MemorySource source(bytes);
  Result<ReadReport> report = ReadTrace(source, "test", test->builder);
  if (!report.ok())
    fprintf(stderr, "%s\n", report.status().message().c_str());
  HPD_CHECK(report.ok());
  test->report = report.value();
  return test;
}

std::unique_ptr<TestTrace> ReadFixture(const std::string& name) {
  return ReadBytes(FixtureBytes(name));
}

}  // namespace heapprofd
