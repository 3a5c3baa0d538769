// Files with heap profiles as a database, for the commands that answer from one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "import/perfetto/byte_source.h"
#include "query/trace_database.h"

namespace heapprofd {

// What may be opened, for help texts.
inline constexpr char kReadableFiles[] =
    "A FILE is a raw-trace or the directory it is in, a trace of Perfetto, a pprof\n"
    "profile, folded stacks or a heaptrack recording; plain, gzip or zstd.\n";

enum class StackForm : uint8_t {
  kCallsites,
  kWhole,  // until TraceDatabase::UseCallsites(): quicker, for reports
};

// Symbols and names that the environment names are applied; `tool` begins the lines on
// stderr about them. `warn` takes what was not right in the files, also later, when the
// first query decodes them. `keeps_contents`: heap dumps stay open for the values of their
// fields, inflated ones on the disk.
Result<std::unique_ptr<TraceDatabase>> OpenTraces(
    const std::vector<std::string>& paths,
    const std::string& tool,
    const std::function<void(const std::string&)>& warn,
    StackForm form = StackForm::kCallsites,
    bool keeps_contents = true);

// A trace with whole stacks. `name` is for messages. `tool`: as above; empty: the trace
// names its functions itself.
Result<std::unique_ptr<TraceDatabase>> OpenOwnTrace(
    ByteSource& source,
    const std::string& name,
    const std::function<void(const std::string&)>& warn,
    const std::string& tool = "");

}  // namespace heapprofd
