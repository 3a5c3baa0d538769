#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

namespace heapprofd {
namespace {

Status Invalid(const std::string& message) {
  return Status(StatusCode::kInvalidArgument, message);
}

// Plain number, or with a binary unit: "4096", "4KiB", "8M".
std::optional<uint64_t> ParseSize(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data())
    return std::nullopt;
  std::string unit(end, text.data() + text.size());
  unsigned shift = 0;
  if (!unit.empty()) {
    const std::string letters = "KMG";
    const size_t index = letters.find(
        static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    const std::string rest = unit.substr(1);
    if (index == std::string::npos || (!rest.empty() && rest != "iB" && rest != "B"))
      return std::nullopt;
    shift = static_cast<unsigned>(index + 1) * 10;
  }
  if (value > UINT64_MAX >> shift)
    return std::nullopt;
  return value << shift;
}

std::optional<uint64_t> ParseNumber(const std::string& text, uint64_t max) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value > max)
    return std::nullopt;
  return value;
}

// Parts between commas; empty ones are dropped.
std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at)
      parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

using Apply = std::function<Status(const std::string&)>;

Apply Switch(bool* target, bool value = true) {
  return [target, value](const std::string&) {
    *target = value;
    return Status();
  };
}

// Accepted, changes nothing here, and says so.
Apply NoEffect(Options& options, const std::string& flag, const std::string& why) {
  return [&options, flag, why](const std::string&) {
    options.notes.push_back(flag + " " + why);
    return Status();
  };
}

Apply Size(const std::string& flag, uint64_t* target, const std::string& rule) {
  return [flag, target, rule](const std::string& text) {
    const std::optional<uint64_t> value = ParseSize(text);
    if (!value)
      return Invalid("cannot use " + flag + " " + text + ": it must be " + rule);
    *target = *value;
    return Status();
  };
}

template <typename T>
Apply Number(const std::string& flag, T* target, uint64_t max, const std::string& rule) {
  return [flag, target, max, rule](const std::string& text) {
    const std::optional<uint64_t> value = ParseNumber(text, max);
    if (!value)
      return Invalid("cannot use " + flag + " " + text + ": it must be " + rule);
    *target = static_cast<T>(*value);
    return Status();
  };
}

Apply List(const std::string& flag, std::vector<std::string>* target) {
  return [flag, target](const std::string& text) {
    const std::vector<std::string> parts = SplitList(text);
    if (parts.empty())
      return Invalid("cannot use " + flag + ": it needs at least one name");
    target->insert(target->end(), parts.begin(), parts.end());
    return Status();
  };
}

Apply PidList(std::vector<pid_t>* target) {
  return [target](const std::string& text) {
    const std::vector<std::string> parts = SplitList(text);
    if (parts.empty())
      return Invalid("cannot use --pid: it needs at least one process id");
    for (const std::string& part : parts) {
      const std::optional<uint64_t> pid = ParseNumber(part, INT32_MAX);
      if (!pid || *pid == 0)
        return Invalid("cannot use --pid: invalid PID " + part);
      target->push_back(static_cast<pid_t>(*pid));
    }
    return Status();
  };
}

// "NAME" or "NAME=BYTES", separated by commas.
Apply HeapList(HeapSelection* target) {
  return [target](const std::string& text) {
    const std::vector<std::string> parts = SplitList(text);
    if (parts.empty())
      return Invalid("cannot use --heaps: it needs at least one name");
    for (const std::string& part : parts) {
      const size_t equals = part.rfind('=');
      HeapSelection::Heap heap{.name = part.substr(0, equals)};
      if (equals != std::string::npos) {
        const std::optional<uint64_t> interval = ParseSize(part.substr(equals + 1));
        if (!interval || *interval < 1 || *interval > uint64_t{1} << 40)
          return Invalid(
              "cannot use --heaps " + text + ": the interval of " + heap.name +
              " must be a number of bytes of at least 1; for example --heaps " +
              heap.name + "=4096");
        heap.interval_bytes = *interval;
      }
      target->heaps.push_back(std::move(heap));
    }
    return CheckHeapSelection(*target);
  };
}

constexpr char kNotOnLinux[] = "has no meaning on Linux and is ignored";

std::vector<Flag> TargetFlags(Options& options) {
  const std::string group = "what to profile";
  TargetRules& targets = options.session.targets;
  return {
      {.letter = 'n',
       .name = "name",
       .value_name = "NAMES",
       .help = "Comma-separated names of processes to profile.",
       .details =
           "A name is compared with the program's file name and argv[0]; * stands "
           "for anything, and a pattern that begins with / is compared with all of "
           "argv[0].",
       .group = group,
       .apply = List("--name", &targets.names)},
      {.letter = 'p',
       .name = "pid",
       .value_name = "PIDS",
       .help = "Comma-separated process ids to profile.",
       .group = group,
       .apply = PidList(&targets.pids)},
      {.name = "no-running",
       .help = "Leave out processes that already run.",
       .group = group,
       .apply = Switch(&targets.no_running)},
      {.name = "no-startup",
       .help = "Leave out processes that start during the profile.",
       .group = group,
       .apply = Switch(&targets.no_startup)},
      {.name = "no-children",
       .help = "Do not profile the processes that PROGRAM starts.",
       .group = group,
       .apply = Switch(&options.session.follow_children, false)},
      {.name = "heaps",
       .value_name = "NAMES",
       .help = "Comma-separated names of heaps to record. Default libc.malloc.",
       .details = "NAME=BYTES gives a heap a sampling interval of its own.",
       .group = group,
       .apply = HeapList(&options.session.heaps)},
      {.name = "all-heaps",
       .help = "Record every heap that a program registers (heap_profile.h).",
       .group = group,
       .apply = Switch(&options.session.heaps.all)},
      {.name = "exclude-heaps",
       .value_name = "NAMES",
       .help = "With --all-heaps: not these.",
       .group = group,
       .apply = List("--exclude-heaps", &options.session.heaps.excluded)},
  };
}

Apply FullMode(Options& options, WhenFull mode, bool* was_given) {
  return [&options, mode, was_given](const std::string&) {
    options.session.when_full = mode;
    *was_given = true;
    return Status();
  };
}

// Which of two flags that exclude each other were given.
struct Given {
  bool block = false;
  bool no_block = false;
};

std::vector<Flag> SamplingFlags(Options& options, Given* given) {
  const std::string group = "how";
  SessionConfig& session = options.session;
  return {
      {.letter = 'i',
       .name = "interval",
       .value_name = "BYTES",
       .help = "Sampling interval. Default 4096; 1 records every allocation.",
       .details = "One sample is taken per BYTES allocated on average; allocations of at "
                  "least BYTES are always recorded. Units: 4K, 1MiB.",
       .group = group,
       .apply = Size("--interval", &session.interval_bytes,
                     "a number of bytes of at least 1")},
      {.letter = 'd',
       .name = "duration",
       .value_name = "MS",
       .help = "Stop after this time (ms). Default 0: when the program ends, or Ctrl-C.",
       .details = "A program that still runs then runs on unprofiled.",
       .group = group,
       .apply = Number("--duration", &options.duration_ms, UINT32_MAX,
                       "a number of milliseconds; 0 records until stopped")},
      {.name = "block-client",
       .help = "When the buffer is full, let the program wait for space. The default.",
       .group = group,
       .apply = FullMode(options, WhenFull::kBlock, &given->block)},
      {.name = "no-block-client",
       .help =
           "When the buffer is full, drop and count records, and double the interval.",
       .group = group,
       .apply = FullMode(options, WhenFull::kDrop, &given->no_block)},
      {.name = "block-client-timeout",
       .value_name = "US",
       .help = "Never let one allocation wait longer than this (microseconds).",
       .details = "A record that found no space in that time is dropped and counted.",
       .group = group,
       .apply =
           Number("--block-client-timeout", &session.block_timeout_us, UINT32_MAX,
                  "a number of microseconds; 0 waits as long as the profiler lives")},
      {.name = "shmem-size",
       .value_name = "BYTES",
       .help = "Size of the buffer per process. Default 8MiB.",
       .details = "A power of two multiple of 4096, at least 8192.",
       .group = group,
       .apply = Size("--shmem-size", &session.ring_size_bytes,
                     "a power of two from 8192 to 268435456 bytes")},
  };
}

std::vector<Flag> DumpFlags(Options& options) {
  const std::string group = "dumps";
  SessionConfig& session = options.session;
  return {
      {.letter = 'c',
       .name = "continuous-dump",
       .value_name = "MS",
       .help = "Dump every MS milliseconds, too. Default 0: off.",
       .details = "There is always a dump at the end. SIGUSR1 and heap_profile mark NAME "
                  "add one at any moment.",
       .group = group,
       .apply = Number("--continuous-dump", &session.dumps.interval_ms, UINT32_MAX,
                       "a number of milliseconds; 0 turns it off")},
      {.name = "dump-at-max",
       .help = "Dump what was live when most was, too.",
       .details = "In the trace the samples then carry the maximum in Perfetto's fields; "
                  "the pprof files have the maximum beside the ordinary views.",
       .group = group,
       .apply = Switch(&session.dumps.at_max)},
      {.name = "malloc-info",
       .help = "Ask the allocator for its own accounting with each dump.",
       .details = "glibc and jemalloc. The summary then tells requested bytes, the "
                  "allocator's overhead and caches, fragmentation and the rest apart.",
       .group = group,
       .apply = Switch(&session.ask_allocator)},
  };
}

Apply Text(const std::string& flag, std::string* target) {
  return [flag, target](const std::string& text) {
    *target = text;
    return text.empty() ? Invalid("cannot use " + flag + ": the name is empty")
                        : Status();
  };
}

std::vector<Flag> OutputFlags(Options& options) {
  const std::string group = "output";
  return {
      {.letter = 'o',
       .name = "output",
       .value_name = "DIRECTORY",
       .help =
           "Write the profile here; must be empty or not exist. Default: a fresh one.",
       .group = group,
       .apply = Text("--output", &options.output_directory)},
      {.name = "top",
       .value_name = "N",
       .help = "Rows of the summary's table. Default 10.",
       .group = group,
       .apply = Number("--top", &options.top, 1000, "a number from 0 to 1000")},
      {.letter = 'q',
       .name = "quiet",
       .help = "Print nothing but errors.",
       .group = group,
       .apply = Switch(&options.quiet)},
      {.name = "print-config",
       .help = "Print the trace configuration instead of recording.",
       .details = "heap_profile record -c - reads it.",
       .group = group,
       .apply = Switch(&options.print_config)},
      {.letter = 'h',
       .name = "help",
       .help = "Show help: -h in short, --help in full.",
       .group = group,
       .apply =
           [&options](const std::string&) {
             options.help = HelpRequest::kLong;
             return Status();
           }},
      {.name = "version",
       .help = "Show the version.",
       .group = group,
       .apply = Switch(&options.show_version)},
      {.name = "generate",
       .value_name = "WHAT",
       .help = "Print a man page or the completions for bash, zsh or fish.",
       .group = group,
       .apply = Text("--generate", &options.generate)},
  };
}

std::vector<Flag> CompatibilityFlags(Options& options) {
  const std::string group = "compatibility";
  return {
      {.name = "no-start",
       .help = "Use a running heapprofd only; do not stand in for it.",
       .group = group,
       .apply = Switch(&options.may_stand_in, false)},
      {.name = "disable-fork-teardown",
       .help = "No effect: a forked child never ends its parent's profile.",
       .group = group,
       .apply = NoEffect(options, "--disable-fork-teardown",
                         "changes nothing: a child never ends its parent's profile")},
      {.name = "idle-allocations",
       .help = "No effect: idle memory is not tracked.",
       .group = group,
       .apply = NoEffect(options, "--idle-allocations",
                         "is ignored: idle memory is not tracked")},
      {.name = "trace-to-text-binary",
       .aliases = {"traceconv-binary", "trace-processor-binary"},
       .value_name = "PATH",
       .help = "Converter for a device's traces. On Linux conversion is built in.",
       .group = group,
       .apply = Text("--trace-to-text-binary", &options.converter)},
      {.name = "no-annotations",
       .help = "No effect: our pprof files have no annotated frames.",
       .group = group,
       .apply = NoEffect(options, "--no-annotations",
                         "changes nothing: pprof files have no annotated frames")},
      {.name = "disable-selinux",
       .help = "android: disable SELinux enforcement during the profile.",
       .group = group,
       .apply = Switch(&options.android.disable_selinux)},
      {.name = "no-versions",
       .help = "android: leave out the versions of packages.",
       .group = group,
       .apply = Switch(&options.android.package_versions, false)},
      {.name = "simpleperf",
       .help = "android: profile heapprofd itself with simpleperf.",
       .group = group,
       .apply = Switch(&options.android.simpleperf)},
  };
}

std::vector<Flag> AllFlags(Options& options, Given* given) {
  std::vector<Flag> all = TargetFlags(options);
  for (const std::vector<Flag>& group :
       {SamplingFlags(options, given), DumpFlags(options), OutputFlags(options),
        CompatibilityFlags(options)})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

CommandText RecordCommand() {
  return {
      .name = "heap_profile",
      .summary = "Profiles the heap of programs and shows who holds their memory.",
      .usage =
          "heap_profile [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
          "heap_profile [host|android] [OPTIONS] -n NAMES | -p PIDS\n"
          "heap_profile record -c FILE [-o DIRECTORY]\n"
          "heap_profile mark NAME\n"
          "heap_profile doctor [-p PID]\n"
          "heap_profile query TRACE [SQL]\n"
          "heap_profile traceconv MODE ...",
      .epilogue =
          "The exit code is the program's own (128 + signal when it was killed); 1: the\n"
          "recording failed, 2: wrong command line, 127: program not found. Ctrl-C ends\n"
          "the recording and keeps the profile.\n"
          "\n"
          "files: raw-trace opens in ui.perfetto.dev; heap_dump.*.pb.gz in pprof and\n"
          "speedscope.app.\n"
          "environment: HEAPPROFD_STATS_JSON names a file for the recording's figures,\n"
          "for scripts; TMPDIR is where a fresh output directory is made;\n"
          "PERFETTO_BINARY_PATH names directories with symbol files.\n"
          "\n"
          "heap_profile doctor tells what can be recorded here, and what to do about the\n"
          "rest. heap_profile query --help and heap_profile traceconv --help tell the rest.\n"};
}

const std::vector<std::string>& Verbs() {
  static const std::vector<std::string> verbs = {"record", "mark", "doctor", "query",
                                                 "traceconv", "host", "android"};
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
  if (!options.converter.empty())
    options.notes.push_back(
        "--trace-to-text-binary is not needed on Linux: conversion is built in");
}

Status CheckTogether(Options& options, const Given& given, bool has_separator) {
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
  if (!options.command.empty() && targets.no_startup)
    return Invalid(
        "cannot use --no-startup with a program to start; use it with --name or --pid");
  if (options.platform == Platform::kHost)
    NoteAndroidOnly(options);
  return {};
}

bool IsOnlyAsked(const Options& options) {
  return options.help != HelpRequest::kNone || options.show_version ||
         !options.generate.empty();
}

}  // namespace

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  Given given;
  bool has_verb = false;
  const auto positional = [&](const std::string& word) {
    if (has_verb || (word != "host" && word != "android"))
      return Invalid("cannot understand \"" + word +
                     "\": it is no option; put -- in front of the program to profile");
    has_verb = true;
    options.platform = word == "host" ? Platform::kHost : Platform::kAndroid;
    return Status();
  };
  HPD_TRY_ASSIGN(const size_t rest,
                 ParseFlags(AllFlags(options, &given), arguments, positional));
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
  config.duration_ms = options.duration_ms;
  TargetRules& targets = config.sessions[0].targets;
  if (!options.command.empty() && targets.names.empty() && targets.pids.empty()) {
    const std::string& program = options.command[0];
    targets.names.push_back(program.substr(program.rfind('/') + 1));
  }
  return config;
}

std::string GeneratedText(const std::string& what, const std::string& version) {
  Options options;
  Given given;
  const std::vector<Flag> flags = AllFlags(options, &given);
  const CommandText command = RecordCommand();
  if (what == "short-help")
    return ShortHelp(command, flags);
  if (what == "help")
    return LongHelp(command, flags);
  if (what == "man")
    return ManualPage(command, flags, version);
  if (what == "bash")
    return BashCompletion(command, flags, Verbs());
  if (what == "zsh")
    return ZshCompletion(command, flags, Verbs());
  return what == "fish" ? FishCompletion(command, flags, Verbs()) : "";
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    fprintf(stderr, "heap_profile: note: %s\n", note.c_str());
}

}  // namespace heapprofd
