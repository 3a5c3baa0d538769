// For tests: the traces of tests/data/traces, and tables as text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "import/perfetto/trace_reader.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// A trace that was read, and how that went.
struct TestTrace {
  ImportedTrace trace;
  TraceBuilder builder{&trace};
  ReadReport report;

  // Of a stack in whichever form it is kept, outermost first.
  std::vector<uint32_t> FramesOf(uint32_t callsite) const;

  // "main;parse": their names.
  std::string Stack(uint32_t callsite) const;

  // Rows of heap_profile_allocation, one a line: "ts pid heap stack count size".
  std::string Allocations() const;
};

// tests/data/traces/NAME.textproto, serialized.
std::string FixtureBytes(const std::string& name);

// Ends the test program when it cannot be read.
std::unique_ptr<TestTrace> ReadFixture(const std::string& name);
std::unique_ptr<TestTrace> ReadBytes(const std::string& bytes);

// The same with TraceBuilder::ReadForConversion.
std::unique_ptr<TestTrace> ReadFixtureForConversion(const std::string& name);

}  // namespace heapprofd
