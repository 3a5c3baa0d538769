#include "cli/record/options.h"

#include <cstdio>
#include <optional>

#include "base/print.h"
#include "cli/record/record_flags.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPerfettoDurationMs =
    uint64_t{7} * 24 * 3600 * 1000;  // its heap_profile's
constexpr char kNotOnLinux[] = "has no meaning on Linux and is ignored";
constexpr char kNotOnDevice[] = "has no meaning on a device and is ignored";

CommandText RecordCommand() {
  return {
      .name = "heap_profile",
      .summary = "Profiles the heap of programs and shows who holds their memory.",
      .usage =
          "heap_profile [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
          "heap_profile [host|android] [OPTIONS] -n NAMES | -p PIDS\n"
          "heap_profile record -c FILE [-o DIRECTORY]\n"
          "heap_profile mark NAME\n"
          "heap_profile doctor [-p PIDS]\n"
          "heap_profile report FILE... [-o FILE]\n"
          "heap_profile query TRACE [SQL]\n"
          "heap_profile traceconv MODE ...\n"
          "heap_profile hprof VERB FILE ...\n"
          "heap_profile java -p PID|-n NAME ...",
      .epilogue =
          "The exit code is the program's own (128 + signal when it was killed); 1: the\n"
          "recording failed, 2: wrong command line, 126: the program cannot be "
          "executed,\n"
          "127: program not found. A report that cannot be made is said and changes "
          "nothing.\n"
          "Ctrl-C ends the recording and keeps the profile.\n"
          "\n"
          "files: report.html opens in a browser, raw-trace in ui.perfetto.dev,\n"
          "heap_dump.*.pb.gz in pprof and speedscope.app.\n"
          "environment: HEAPPROFD_STATS_JSON names a file for the recording's figures,\n"
          "for scripts; TMPDIR is where a fresh output directory is made;\n"
          "PERFETTO_BINARY_PATH names directories with symbol files.\n"
          "\n"
          "heap_profile doctor tells what can be recorded here, and what to do about "
          "the\n"
          "rest. heap_profile query --help and heap_profile traceconv --help tell the "
          "rest.\n"};
}

const std::vector<std::string>& Verbs() {
  static const std::vector<std::string> verbs = {
      "record",    "mark",  "doctor", "report", "query",
      "traceconv", "hprof", "java",   "host",   "android"};
  return verbs;
}

// Notes on flags that only a device understands.
void NoteAndroidOnly(Options& options) {
  if (options.android.disable_selinux)
    options.notes.push_back(std::string("--disable-selinux ") + kNotOnLinux);
  if (!options.android.package_versions)
    options.notes.push_back(std::string("--no-versions ") + kNotOnLinux);
  if (options.android.simpleperf)
    options.notes.push_back(std::string("--simpleperf ") + kNotOnLinux);
  if (options.session.device.disable_fork_teardown)
    options.notes.push_back(
        "--disable-fork-teardown changes nothing: a child never ends its parent's "
        "profile");
  if (!options.android.annotate)
    options.notes.push_back(
        "--no-annotations changes nothing: pprof files have no annotated frames");
  if (!options.converter.empty())
    options.notes.push_back(
        "--trace-to-text-binary is not needed on Linux: conversion is built in");
}

// Notes on flags that only Linux understands.
void NoteLinuxOnly(Options& options) {
  if (options.session.ask_allocator)
    options.notes.push_back(std::string("--malloc-info ") + kNotOnDevice);
  if (!options.session.follow_children)
    options.notes.push_back(std::string("--no-children ") + kNotOnDevice);
  options.session.ask_allocator = false;
  options.session.follow_children = true;
}

Status CheckTogether(Options& options, const GivenFlags& given, bool has_separator) {
  if (given.block && given.no_block)
    return Invalid("cannot use --block-client together with --no-block-client");
  HPD_TRY(CheckSessionConfig(options.session));
  if (!options.session.heaps.excluded.empty() && !options.session.heaps.all)
    return Invalid("cannot use --exclude-heaps: it only makes sense with --all-heaps");
  const TargetRules& targets = options.session.targets;
  const bool has_targets = !targets.names.empty() || !targets.pids.empty();
  if (options.command.empty() && (has_separator || !has_targets))
    return Invalid(
        "cannot profile: no program is named and neither --pid nor --name is given; for "
        "example: heap_profile -- python3 script.py");
  if (!options.command.empty() && options.platform == Platform::kAndroid)
    return Invalid(
        "cannot start a program on a device: name a process there with --name");
  if (!options.command.empty() && !targets.pids.empty())
    return Invalid(
        "cannot use --pid with a program to start, whose process id nobody knows before; "
        "choose with --name, or attach with --pid alone");
  if (!options.command.empty() && targets.no_startup)
    return Invalid(
        "cannot use --no-startup with a program to start; use it with --name or --pid");
  if (options.platform == Platform::kHost)
    NoteAndroidOnly(options);
  else
    NoteLinuxOnly(options);
  return {};
}

Status NoVerb(const std::string& word) {
  const std::string nearest = NearestWord(word, Verbs());
  return Invalid("cannot understand \"" + word + "\": it is no option; " +
                 (nearest.empty() ? "" : "did you mean " + nearest + "? Else ") +
                 "put -- in front of the program to profile");
}

bool IsOnlyAsked(const Options& options) {
  return options.help != HelpRequest::kNone || options.show_version ||
         !options.generate.empty();
}

}  // namespace

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  GivenFlags given;
  bool has_verb = false;
  const auto positional = [&](const std::string& word) {
    if (has_verb || (word != "host" && word != "android"))
      return NoVerb(word);
    has_verb = true;
    options.platform = word == "host" ? Platform::kHost : Platform::kAndroid;
    return Status();
  };
  HPD_TRY_ASSIGN(const size_t rest,
                 ParseFlags(RecordFlags(options, &given), arguments, positional));
  // The table knows one help; how it was asked for tells which.
  for (size_t i = 0; i < rest && i < arguments.size(); ++i) {
    if (options.help == HelpRequest::kLong && arguments[i] == "-h")
      options.help = HelpRequest::kShort;
  }
  options.command.assign(arguments.begin() + static_cast<ptrdiff_t>(rest),
                         arguments.end());
  const bool has_separator = rest > 0 && arguments[rest - 1] == "--";
  if (!IsOnlyAsked(options))
    HPD_TRY(CheckTogether(options, given, has_separator));
  return options;
}

RecordingConfig ConfigOf(const Options& options) {
  RecordingConfig config;
  config.sessions.push_back(options.session);
  const uint64_t by_default = options.command.empty() ? kPerfettoDurationMs : 0;
  config.duration_ms = options.duration_ms.value_or(by_default);
  TargetRules& targets = config.sessions[0].targets;
  if (!options.command.empty() && targets.names.empty()) {
    const std::string& program = options.command[0];
    targets.names.push_back(program.substr(program.rfind('/') + 1));
  }
  return config;
}

std::string GeneratedText(const std::string& what) {
  Options options;
  GivenFlags given;
  const std::vector<Flag> flags = RecordFlags(options, &given);
  const CommandText command = RecordCommand();
  if (what == "short-help")
    return ShortHelp(command, flags);
  if (what == "help")
    return LongHelp(command, flags);
  if (what == "zsh")
    return ZshCompletion(command, flags, Verbs());
  return what == "fish" ? FishCompletion(command, flags, Verbs()) : "";
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    Print(stderr, "heap_profile: note: %s\n", note.c_str());
}

}  // namespace heapprofd
