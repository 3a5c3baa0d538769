#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <sstream>

namespace heapprofd {
namespace {

using Apply = std::function<Status(Options&, const std::string&)>;

struct Flag {
  char letter;             // 0: none
  const char* name;        // without dashes
  const char* value_name;  // nullptr: takes no value
  const char* help;
  Apply apply;
};

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

Status ApplyInterval(Options& options, const std::string& text) {
  const std::optional<uint64_t> value = ParseSize(text);
  if (!value || *value < 1 || *value > uint64_t{1} << 40)
    return Invalid("cannot use --interval " + text +
                   ": it must be a number of bytes of at least 1; 4096 is the default, 1 "
                   "records everything");
  options.session.interval_bytes = *value;
  return {};
}

Status ApplyRingSize(Options& options, const std::string& text) {
  const std::optional<uint64_t> value = ParseSize(text);
  if (!value || *value < kMinRingSize || *value > kMaxRingSize ||
      (*value & (*value - 1)) != 0)
    return Invalid("cannot use --shmem-size " + text +
                   ": it must be a power of two from 8192 to 268435456 bytes; 8388608 is "
                   "the default");
  options.session.ring_size_bytes = *value;
  return {};
}

Status ApplyTimeout(Options& options, const std::string& text) {
  const std::optional<uint64_t> value = ParseSize(text);
  if (!value || *value > UINT32_MAX)
    return Invalid(
        "cannot use --block-client-timeout " + text +
        ": it must be a number of microseconds; 0 waits as long as the profiler lives");
  options.session.block_timeout_us = *value;
  return {};
}

Status ApplyTop(Options& options, const std::string& text) {
  const std::optional<uint64_t> value = ParseSize(text);
  if (!value || *value > 1000)
    return Invalid("cannot use --top " + text + ": it must be a number from 0 to 1000");
  options.top = static_cast<uint32_t>(*value);
  return {};
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  return parts;
}

Status ApplyPids(Options& options, const std::string& text) {
  for (const std::string& part : SplitAtCommas(text)) {
    const std::optional<uint64_t> pid = ParseSize(part);
    if (!pid || *pid < 1 || *pid > INT32_MAX)
      return Invalid("cannot use --pid " + text +
                     ": it must be process ids, separated by commas");
    options.pids.push_back(static_cast<pid_t>(*pid));
  }
  return {};
}

Status ApplyNames(Options& options, const std::string& text) {
  for (const std::string& part : SplitAtCommas(text)) {
    if (part.empty())
      return Invalid("cannot use --name " + text +
                     ": it must be names of programs, separated by commas");
    options.names.push_back(part);
  }
  return {};
}

Status ApplyDuration(Options& options, const std::string& text) {
  const std::optional<uint64_t> value = ParseSize(text);
  if (!value || *value > UINT32_MAX)
    return Invalid("cannot use --duration " + text +
                   ": it must be a number of milliseconds; 0 records until stopped");
  options.duration_ms = *value;
  return {};
}

template <typename Set>
Apply Switch(Set set) {
  return [set](Options& options, const std::string&) {
    set(options);
    return Status();
  };
}

const std::vector<Flag>& Flags() {
  static const std::vector<Flag> flags = {
      {'i', "interval", "BYTES",
       "Sampling interval: one sample per BYTES allocated on average. Default 4096.",
       ApplyInterval},
      {'o', "output", "DIRECTORY",
       "Write the profile here; must be empty or not exist. Default: a fresh one.",
       [](Options& options, const std::string& text) {
         options.output_directory = text;
         return text.empty()
                    ? Invalid("cannot use --output: the directory's name is empty")
                    : Status();
       }},
      {'p', "pid", "PIDS", "Comma-separated ids of running processes to profile.",
       ApplyPids},
      {'n', "name", "NAMES", "Comma-separated names of programs to profile.", ApplyNames},
      {'d', "duration", "MS", "With -p or -n: stop after this time. Default 0: Ctrl-C.",
       ApplyDuration},
      {0, "no-children", nullptr, "Do not profile the processes that PROGRAM starts.",
       Switch([](Options& options) { options.session.follow_children = false; })},
      {0, "block-client", nullptr,
       "When the buffer is full, let the program wait for space. The default.",
       Switch([](Options& options) { options.session.when_full = WhenFull::kBlock; })},
      {0, "no-block-client", nullptr,
       "When the buffer is full, drop and count records, and double the interval.",
       Switch([](Options& options) { options.session.when_full = WhenFull::kDrop; })},
      {0, "block-client-timeout", "US",
       "Never let one allocation wait longer than this (microseconds).", ApplyTimeout},
      {0, "shmem-size", "BYTES",
       "Size of the buffer per process: a power of two. Default 8MiB.", ApplyRingSize},
      {0, "top", "N", "Rows of the summary's table. Default 10.", ApplyTop},
      {'q', "quiet", nullptr, "Print nothing but errors.",
       Switch([](Options& options) { options.quiet = true; })},
      {'h', "help", nullptr, "Show this help.",
       Switch([](Options& options) { options.show_help = true; })},
      {0, "version", nullptr, "Show the version.",
       Switch([](Options& options) { options.show_version = true; })},
  };
  return flags;
}

// Number of single-character edits between two names, to guess what was meant.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Status UnknownFlag(const std::string& argument) {
  const std::string name = argument.substr(argument.find_first_not_of('-'));
  const Flag* nearest = nullptr;
  size_t best = 4;  // more edits than this are another word
  for (const Flag& flag : Flags()) {
    const size_t distance = EditDistance(name, flag.name);
    if (distance < best) {
      best = distance;
      nearest = &flag;
    }
  }
  std::string hint = nearest != nullptr
                         ? std::string("did you mean --") + nearest->name + "?"
                         : "heap_profile --help lists all options";
  return Invalid("cannot use option " + argument + ": there is none of this name; " +
                 hint);
}

const Flag* FindFlag(const std::string& argument) {
  for (const Flag& flag : Flags()) {
    if (argument == std::string("--") + flag.name ||
        (flag.letter != 0 && argument == std::string("-") + flag.letter))
      return &flag;
  }
  return nullptr;
}

// Splits "--name=value" and "-i4096".
void SplitValue(std::string* argument, std::optional<std::string>* value) {
  const size_t equals = argument->find('=');
  if (argument->starts_with("--") && equals != std::string::npos) {
    *value = argument->substr(equals + 1);
    argument->resize(equals);
  } else if (!argument->starts_with("--") && argument->size() > 2) {
    *value = argument->substr(2);
    argument->resize(2);
  }
}

Status ApplyFlag(Options& options,
                 const std::vector<std::string>& arguments,
                 size_t* index) {
  std::string argument = arguments[*index];
  std::optional<std::string> value;
  SplitValue(&argument, &value);
  const Flag* flag = FindFlag(argument);
  if (flag == nullptr)
    return UnknownFlag(argument);
  if (flag->value_name == nullptr)
    return value ? Invalid("cannot use " + arguments[*index] + ": " + argument +
                           " takes no value")
                 : flag->apply(options, "");
  if (!value && *index + 1 < arguments.size() && arguments[*index + 1] != "--")
    value = arguments[++*index];
  if (!value)
    return Invalid("cannot use " + argument + ": its value " + flag->value_name +
                   " is missing");
  return flag->apply(options, *value);
}

}  // namespace

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  const auto own_count = static_cast<size_t>(separator - arguments.begin());
  for (size_t i = 0; i < own_count; ++i) {
    if (!arguments[i].starts_with("-") || arguments[i] == "-")
      return Invalid("cannot understand \"" + arguments[i] +
                     "\": it is no option; put -- in front of the program to profile");
    HPD_TRY(ApplyFlag(options, arguments, &i));
  }
  if (separator != arguments.end())
    options.command.assign(separator + 1, arguments.end());
  const bool has_running = !options.pids.empty() || !options.names.empty();
  if (has_running && !options.command.empty())
    return Invalid(
        "cannot profile: both a program to start and running processes are named; use "
        "one "
        "recording for each");
  if (options.command.empty() && !has_running && !options.show_help &&
      !options.show_version)
    return Invalid(
        "cannot profile: no program is named; for example: heap_profile -- python3 "
        "script.py");
  return options;
}

std::string HelpText() {
  std::string text =
      "Profiles the heap of a program from its first allocation and shows who holds its "
      "memory.\n"
      "\n"
      "usage: heap_profile [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
      "       heap_profile [OPTIONS] -p PID | -n NAME\n"
      "       heap_profile doctor [-p PID]      what can be recorded here\n"
      "\n"
      "options:\n";
  constexpr size_t kColumn = 30;
  for (const Flag& flag : Flags()) {
    std::string left =
        flag.letter != 0 ? std::string("  -") + flag.letter + ", " : "      ";
    left += std::string("--") + flag.name;
    if (flag.value_name != nullptr)
      left += std::string(" ") + flag.value_name;
    left += left.size() < kColumn ? std::string(kColumn - left.size(), ' ')
                                  : "\n" + std::string(kColumn, ' ');
    text += left + flag.help + "\n";
  }
  text +=
      "\n"
      "The exit code is the program's own (128 + signal when it was killed); 2: wrong "
      "command line,\n"
      "127: program not found. Ctrl-C ends the recording and keeps the profile.\n"
      "\n"
      "files: raw-trace opens in ui.perfetto.dev; heap_dump.*.pb.gz in pprof and "
      "speedscope.app.\n";
  return text;
}

}  // namespace heapprofd
