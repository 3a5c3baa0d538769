// heap_profile: entry point.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/doctor.h"
#include "cli/options.h"
#include "cli/record.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "doctor")
    return heapprofd::RunDoctor({arguments.begin() + 1, arguments.end()});
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
  return options.value().command.empty() ? heapprofd::RunRecordRunning(options.value())
                                         : heapprofd::RunRecord(options.value());
}
