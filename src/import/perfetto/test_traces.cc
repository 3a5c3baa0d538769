#include "import/perfetto/test_traces.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "trace/text_format.h"

namespace heapprofd {

namespace {

void Read(const std::string& bytes, TestTrace& test) {
  MemorySource source(bytes);
  Result<ReadReport> report = ReadTrace(source, "test", test.builder);
  if (!report.ok())
    fprintf(stderr, "%s\n", report.status().message().c_str());
  HPD_CHECK(report.ok());
  test.report = report.value();
}

}  // namespace

std::vector<uint32_t> TestTrace::FramesOf(uint32_t callsite) const {
  if (builder.has_whole_stacks()) {
    const std::span<const uint32_t> stack = trace.stacks.FramesOf(callsite);
    return {stack.begin(), stack.end()};
  }
  std::vector<uint32_t> frames;
  for (uint32_t at = callsite; at != kNoId; at = trace.callsites.parent[at])
    frames.push_back(trace.callsites.frame[at]);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::string TestTrace::Stack(uint32_t callsite) const {
  std::string text;
  for (const uint32_t frame : FramesOf(callsite))
    text.append(text.empty() ? "" : ";").append(trace.Text(trace.frames.name[frame]));
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
  Read(bytes, *test);
  return test;
}

std::unique_ptr<TestTrace> ReadFixture(const std::string& name) {
  return ReadBytes(FixtureBytes(name));
}

std::unique_ptr<TestTrace> ReadFixtureForConversion(const std::string& name) {
  auto test = std::make_unique<TestTrace>();
  test->builder.ReadForConversion();
  Read(FixtureBytes(name), *test);
  return test;
}

}  // namespace heapprofd
