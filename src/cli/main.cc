// heap_profile: entry point.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/finish.h"
#include "cli/options.h"
#include "cli/record.h"

namespace heapprofd {
namespace {

int RunHeapProfile(const std::vector<std::string>& arguments) {
  Result<Options> parsed = ParseOptions(arguments);
  if (!parsed.ok())
    return Fail(parsed.status());
  const Options& options = parsed.value();
  if (options.help != HelpRequest::kNone || !options.generate.empty()) {
    const std::string what = !options.generate.empty()            ? options.generate
                             : options.help == HelpRequest::kLong ? "help"
                                                                  : "short-help";
    const std::string text = GeneratedText(what, HPD_VERSION);
    if (text.empty())
      return Fail(Status(StatusCode::kInvalidArgument,
                         "cannot generate " + what + ": use man, bash, zsh or fish"));
    fputs(text.c_str(), stdout);
    return kExitOk;
  }
  if (options.show_version) {
    puts("heap_profile " HPD_VERSION);
    return kExitOk;
  }
  PrintNotes(options.notes);
  if (options.print_config) {
    fputs(PrintTraceConfig(ConfigOf(options)).c_str(), stdout);
    return kExitOk;
  }
  return RunProgram(options);
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return heapprofd::RunHeapProfile(arguments);
}
