// Arbitrary SQL against a small trace: nothing may crash, write, or run for ever.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "query/trace_database.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

// Ends a query after a number of rows; one that gives none is ended by the clock of the
// fuzzer's driver only if it does not end by itself.
class FewRows : public ResultSink {
 public:
  explicit FewRows(CancelFlag& flag) : flag_(flag) {}

  Status BeginResult(const Statement&) override { return {}; }

  Status AddRow(const Statement& statement) override {
    for (size_t i = 0; i < statement.column_count(); ++i)
      bytes_ += statement.At(i).text.size();
    if (++rows_ > 1000)
      flag_ = true;
    return {};
  }

  Status EndResult() override { return {}; }

 private:
  CancelFlag& flag_;
  size_t rows_ = 0;
  size_t bytes_ = 0;
};

std::unique_ptr<ImportedTrace> SmallTrace() {
  auto trace = std::make_unique<ImportedTrace>();
  TraceBuilder builder(trace.get());
  ImportedMapping mapping;
  mapping.name = builder.Intern("/bin/prog");
  const uint32_t row = builder.InternMapping(mapping);
  const char* names[] = {"main", "_ZN3foo3barEv", "malloc"};
  uint32_t callsite = kNoId;
  ImportedDump dump;
  dump.upid = builder.processes().ProcessOf(42);
  dump.heap_name = builder.Intern("libc.malloc");
  for (int64_t ts = 1; ts <= 3; ++ts) {
    dump.ts = ts * 100;
    builder.dumps().Begin(dump);
    for (uint64_t i = 0; i < 3; ++i) {
      callsite = builder.InternCallsite(
          callsite, builder.InternFrame(builder.Intern(names[i]), row, i));
      builder.dumps().AddAllocation(callsite, 1, static_cast<int64_t>(i) * 10);
      builder.dumps().AddAllocation(callsite, -1, -5);
    }
  }
  return trace;
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;  // NOLINT
  static const std::unique_ptr<TraceDatabase> database =
      std::move(TraceDatabase::Create(SmallTrace())).value();
  database->cancel_flag() = false;
  FewRows sink(database->cancel_flag());
  const Status status = database->Run(
      std::string_view(reinterpret_cast<const char*>(data), size), sink);  // NOLINT
  return status.ok() ? 0 : 0;
}
