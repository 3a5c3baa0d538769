// heap_profile: entry point. A verb is the first argument, or the name by which the
// program was called.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/query_command.h"
#include "cli/record.h"
#include "cli/traceconv.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string_view path = argc > 0 ? argv[0] : "";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "traceconv")
    return heapprofd::RunTraceconv(arguments);
  if (name == "trace_processor_shell")
    return heapprofd::RunQueryCommand(heapprofd::QueryDialect::kTraceProcessorShell,
                                      arguments);
  if (!arguments.empty() && arguments[0] == "traceconv") {
    arguments.erase(arguments.begin());
    return heapprofd::RunTraceconv(arguments);
  }
  if (!arguments.empty() && arguments[0] == "query") {
    arguments.erase(arguments.begin());
    return heapprofd::RunQueryCommand(heapprofd::QueryDialect::kHeapProfile, arguments);
  }
  heapprofd::Result<heapprofd::Options> options = heapprofd::ParseOptions(arguments);
  if (!options.ok()) {
    fprintf(stderr, "heap_profile: %s\n", options.status().message().c_str());
    return heapprofd::kExitUsage;
  }
  if (options.value().show_help) {
    fputs(heapprofd::HelpText().c_str(), stdout);
    return heapprofd::kExitOk;
  }
  if (options.value().show_version) {
    puts("heap_profile " HPD_VERSION);
    return heapprofd::kExitOk;
  }
  return heapprofd::RunRecord(options.value());
}
