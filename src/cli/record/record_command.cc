#include "cli/record/record_command.h"

#include <memory>
#include <string>

#include "base/print.h"
#include "cli/commands.h"
#include "cli/flag_values.h"
#include "cli/record/android.h"
#include "cli/record/record.h"
#include "cli/record/record_flags.h"

namespace heapprofd {
namespace {

CommandText RecordingText() {
  return {
      .name = "heap_profile",
      .summary = "Profiles the heap of programs and shows who holds their memory.",
      .usage =
          "heap_profile [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
          "heap_profile [host|android] [OPTIONS] -n NAMES | -p PIDS\n"
          "heap_profile COMMAND ...",
      .epilogue =
          "The exit code is the program's own (128 + signal when it was killed); 1: the\n"
          "recording failed, 2: wrong command line, 4: nothing was recorded by -n or "
          "-p,\n"
          "or a file has nothing to tell, 5: what --fail-if names has come true,\n"
          "126: the program cannot be executed, 127: program not found. A program's own\n"
          "code goes before 1. A report that cannot be made is said and changes\n"
          "nothing. Ctrl-C ends the recording and keeps the profile.\n"
          "\n"
          "files: report.html opens in a browser, raw-trace in ui.perfetto.dev,\n"
          "heap_dump.*.pb.gz in pprof and speedscope.app.\n"
          "environment: HEAPPROFD_STATS_JSON names a file for the recording's figures,\n"
          "for scripts; TMPDIR is where a fresh output directory is made;\n"
          "PERFETTO_BINARY_PATH names directories with symbol files.\n"
          "\n"
          "heap_profile COMMAND --help tells of a command.\n"};
}

bool IsPlatform(const std::string& word) {
  return word == "host" || word == "android";
}

Status NoVerb(const std::string& word) {
  if (IsPlatform(word))
    return Invalid("cannot understand \"" + word +
                   "\": host or android is named already; leave one out");
  if (IsCommandName(word))
    return Invalid("cannot understand \"" + word +
                   "\": a command comes before all else; begin with heap_profile " +
                   word + ", or put -- in front of the program to profile");
  const std::string nearest = NearestWord(word, CommandNames());
  return Invalid("cannot understand \"" + word + "\": it is no option; " +
                 (nearest.empty() ? "" : "did you mean " + nearest + "? Else ") +
                 "put -- in front of the program to profile");
}

Status TakeVerb(Options& options, const std::string& word) {
  // What -p $(pidof NAME) becomes.
  if (!options.session.targets.pids.empty() && ParseNumber(word, INT32_MAX))
    return Invalid("cannot understand \"" + word +
                   "\": process ids are one word; put commas between them, or quotes "
                   "around them");
  if (options.given.platform || !IsPlatform(word))
    return NoVerb(word);
  options.given.platform = true;
  options.platform = word == "host" ? Platform::kHost : Platform::kAndroid;
  return {};
}

Result<int> Record(Options& options) {
  if (!options.generate.empty()) {
    HPD_TRY_ASSIGN(const std::string text, GeneratedText(options.generate));
    PrintText(text);
    return static_cast<int>(kExitOk);
  }
  HPD_TRY(CheckOptions(options));
  PrintNotes(options.notes);
  if (options.print_config) {
    PrintText(options.platform == Platform::kAndroid
                  ? DeviceConfigText(options)
                  : PrintTraceConfig(ConfigOf(options)));
    return static_cast<int>(kExitOk);
  }
  if (options.platform == Platform::kAndroid)
    return RunOnAndroid(options);
  return options.command.empty() ? RunOnProcesses(options) : RunProgram(options);
}

}  // namespace

CommandLine RecordingLineFor(Options& options) {
  return {.text = RecordingText(),
          .flags = RecordFlags(options),
          .take_word =
              [&options](const std::string& word) { return TakeVerb(options, word); },
          .take_rest =
              [&options](const Words& rest) {
                options.given.separator = true;
                options.command = rest;
                return Status();
              }};
}

CommandLine RecordingLine() {
  const auto options = std::make_shared<Options>();
  CommandLine line = RecordingLineFor(*options);
  line.run = [options] { return Record(*options); };
  return line;
}

}  // namespace heapprofd
