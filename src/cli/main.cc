// heap_profile: entry point.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/print.h"
#include "cli/convert/traceconv.h"
#include "cli/doctor.h"
#include "cli/hprof/hprof_command.h"
#include "cli/hprof/java_command.h"
#include "cli/query/query_command.h"
#include "cli/record/android.h"
#include "cli/record/options.h"
#include "cli/record/own_limits.h"
#include "cli/record/record.h"
#include "cli/record/record_config.h"
#include "cli/record/remote_recording.h"
#include "cli/report_command.h"
#include "cli/results/finish.h"

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
    const std::string text = GeneratedText(what);
    if (text.empty())
      return Fail(Status(StatusCode::kInvalidArgument,
                         "cannot generate " + what + ": use zsh or fish"));
    PrintText(text);
    return kExitOk;
  }
  if (options.show_version) {
    puts("heap_profile " HPD_VERSION);
    return kExitOk;
  }
  PrintNotes(options.notes);
  if (options.print_config) {
    const std::string text = options.platform == Platform::kAndroid
                                 ? DeviceConfigText(options)
                                 : PrintTraceConfig(ConfigOf(options));
    PrintText(text);
    return kExitOk;
  }
  if (options.platform == Platform::kAndroid)
    return RunOnAndroid(options);
  return options.command.empty() ? RunOnProcesses(options) : RunProgram(options);
}

int RunMark(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && (arguments[0] == "-h" || arguments[0] == "--help")) {
    puts(
        "usage: heap_profile mark NAME\n\n"
        "Adds a dump with this name: to the recording under which it runs, else to all "
        "of this user.");
    return kExitOk;
  }
  if (arguments.size() != 1 || arguments[0].empty() || arguments[0][0] == '-')
    return Fail(Status(StatusCode::kInvalidArgument,
                       "cannot mark: one name is needed; for example: heap_profile mark "
                       "after-load"));
  return MarkRecordings(arguments[0]);
}

// What to do is told by the name of the command or by the first word.
int Run(const std::string& name, std::vector<std::string> arguments) {
  if (name == "perfetto")
    return RunPerfettoCommand(arguments);
  if (name == "traceconv")
    return RunTraceconv(arguments);
  if (name == "trace_processor_shell")
    return RunQueryCommand(QueryDialect::kTraceProcessorShell, arguments);
  if (name == "hprof-conv")
    return RunHprofConv(arguments);
  const std::string verb = arguments.empty() ? "" : arguments[0];
  std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1),
                                arguments.end());
  if (verb == "help" && rest.empty())
    return RunHeapProfile({"--help"});
  if (verb == "record")
    return RunRecordVerb(rest);
  if (verb == "doctor")
    return RunDoctor(rest);
  if (verb == "mark")
    return RunMark(rest);
  if (verb == "hprof")
    return RunHprofVerb(rest);
  if (verb == "java")
    return RunJavaVerb(rest);
  if (verb == "traceconv")
    return RunTraceconv(rest);
  if (verb == "report")
    return RunReportCommand(rest);
  if (verb == "query")
    return RunQueryCommand(QueryDialect::kHeapProfile, rest);
  return RunHeapProfile(arguments);
}

int WithOutput(int exit_code) {
  if (exit_code != kExitOk)
    return exit_code;
  const Status status = FlushOutput();
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  heapprofd::LiftOwnLimits();
  const std::string path = argc > 0 ? argv[0] : "heap_profile";
  return heapprofd::WithOutput(
      heapprofd::Run(path.substr(path.rfind('/') + 1),
                     std::vector<std::string>(argv + std::min(argc, 1), argv + argc)));
}
