#include "cli/convert/traceconv.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <string_view>

#include "base/print.h"
#include "cli/record/options.h"

namespace heapprofd {
namespace {

using Apply = std::function<Status(TraceconvOptions&, const std::string&)>;

struct Mode {
  std::string_view name;
  const char* help;
  Status (*run)(const TraceconvOptions&);
  bool writes_file;  // takes an output beside the input
};

constexpr Mode kModes[] = {
    {"profile",
     "heap dumps as pprof files (heap_dump.N.PID.HEAP.pb, java_heap_dump.N.PID.pb)",
     ConvertToProfiles, false},
    {"java_heap_profile", "as profile --java-heap", ConvertToJavaProfiles, false},
    {"text", "the packets as protobuf text", ConvertToText, true},
    {"binary", "a trace of what text wrote", ConvertToBinary, true},
    {"decompress_packets", "the trace without compression", ConvertToPlainPackets, true},
    {"symbolize",
     "names, files and lines of the trace's addresses, as packets to append to it",
     ConvertToSymbols, true},
    {"deobfuscate",
     "the mapping files of PERFETTO_PROGUARD_MAP, as packets to append to a trace",
     ConvertToDeobfuscation, true},
    {"bundle", "trace, symbols and mapping files in one archive (OUTPUT is needed)",
     ConvertToBundle, true},
};

struct ConvertFlag {
  std::string_view name;
  const char* value_name;  // nullptr: takes no value
  const char* help;
  Apply apply;
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<int64_t> ParseNumber(std::string_view flag, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return Invalid("cannot use --" + std::string(flag) + " " + text +
                   ": it is no whole number from 0 to 9223372036854775807");
  return value;
}

Status SetKind(TraceconvOptions& options, ProfileKind kind) {
  if (options.kind != ProfileKind::kDetect && options.kind != kind)
    return Invalid(
        "cannot use --alloc and --java-heap together: they name different profiles; run "
        "traceconv once for each");
  options.kind = kind;
  return {};
}

template <bool TraceconvOptions::*option, bool value = true>
Status Set(TraceconvOptions& options, const std::string&) {
  options.*option = value;
  return {};
}

const std::vector<ConvertFlag>& ConvertFlags() {
  static const std::vector<ConvertFlag> flags = {
      {"pid", "PID", "profile: only dumps of this process",
       [](TraceconvOptions& options, const std::string& text) {
         HPD_TRY_ASSIGN(options.pid, ParseNumber("pid", text));
         return Status();
       }},
      {"timestamps", "T,...",
       "profile: only dumps of these times (as the trace has them)",
       [](TraceconvOptions& options, const std::string& text) {
         for (const std::string& part : Split(text)) {
           HPD_TRY_ASSIGN(const int64_t ts, ParseNumber("timestamps", part));
           options.timestamps.push_back(ts);
         }
         return options.timestamps.empty()
                    ? Invalid("cannot use --timestamps: it names no time")
                    : Status();
       }},
      {"output-dir", "DIR", "profile: write here; default: a fresh directory",
       [](TraceconvOptions& options, const std::string& text) {
         options.output_directory = text;
         return Status();
       }},
      {"no-annotations", nullptr,
       "profile: leave the kind of Java frames out of their names",
       Set<&TraceconvOptions::annotate, false>},
      {"alloc", nullptr, "profile: native heaps; default: what the trace has",
       [](TraceconvOptions& options, const std::string&) {
         return SetKind(options, ProfileKind::kAlloc);
       }},
      {"java-heap", nullptr, "profile: Java heaps (heap graphs)",
       [](TraceconvOptions& options, const std::string&) {
         return SetKind(options, ProfileKind::kJavaHeap);
       }},
      {"perf", nullptr, nullptr,
       [](TraceconvOptions&, const std::string&) {
         return Invalid(
             "cannot convert CPU profiles: only heaps are read here; Perfetto's own "
             "traceconv profile --perf does it");
       }},
      {"symbol-paths", "DIR,...", "symbolize, bundle: more directories with symbol files",
       [](TraceconvOptions& options, const std::string& text) {
         options.symbol_paths = Split(text);
         return Status();
       }},
      {"no-auto-symbol-paths", nullptr, "bundle: look for symbols in --symbol-paths only",
       Set<&TraceconvOptions::auto_symbol_paths, false>},
      {"proguard-map", "[PACKAGE=]FILE",
       "deobfuscate, bundle: a mapping file; may be repeated",
       [](TraceconvOptions& options, const std::string& text) {
         options.proguard_maps.push_back(text);
         return Status();
       }},
      {"no-auto-proguard-maps", nullptr, "bundle: ignore PERFETTO_PROGUARD_MAP",
       Set<&TraceconvOptions::auto_proguard_maps, false>},
      {"verbose", nullptr, "say what was looked for in vain",
       Set<&TraceconvOptions::verbose>},
      {"help", nullptr, "show this help", Set<&TraceconvOptions::show_help>},
      {"version", nullptr, "show the version", Set<&TraceconvOptions::show_version>},
  };
  return flags;
}

const Mode* FindMode(std::string_view name) {
  const auto mode = std::find_if(std::begin(kModes), std::end(kModes),
                                 [&](const Mode& m) { return m.name == name; });
  return mode == std::end(kModes) ? nullptr : mode;
}

Status ApplyFlag(TraceconvOptions& options,
                 const std::vector<std::string>& arguments,
                 size_t* index) {
  std::string name = arguments[*index] == "-h" ? "help" : arguments[*index].substr(2);
  std::optional<std::string> value;
  if (const size_t equals = name.find('='); equals != std::string::npos) {
    value = name.substr(equals + 1);
    name.resize(equals);
  }
  const auto flag = std::find_if(ConvertFlags().begin(), ConvertFlags().end(),
                                 [&](const ConvertFlag& f) { return f.name == name; });
  if (flag == ConvertFlags().end())
    return Invalid("cannot use option " + arguments[*index] +
                   ": there is none of this name; traceconv --help lists all");
  if (flag->value_name == nullptr)
    return value ? Invalid("cannot use --" + name + ": it takes no value")
                 : flag->apply(options, "");
  if (!value && *index + 1 < arguments.size())
    value = arguments[++*index];
  if (!value)
    return Invalid("cannot use --" + name + ": its value " + flag->value_name +
                   " is missing");
  return flag->apply(options, *value);
}

Status SetFiles(TraceconvOptions& options, const std::vector<std::string>& files) {
  if (files.empty())
    return Invalid("cannot convert: no mode is named; traceconv --help lists them");
  options.mode = files[0];
  const Mode* const mode = FindMode(options.mode);
  if (mode == nullptr)
    return Invalid("cannot convert to \"" + options.mode +
                   "\": there is no such mode; traceconv --help lists them");
  if (files.size() > 3)
    return Invalid("cannot convert: there is one input and one output at most, not " +
                   files[3]);
  if (files.size() > 2 && !mode->writes_file)
    return Invalid("cannot write to " + files[2] + ": mode " + options.mode +
                   " writes several files; name a directory with --output-dir");
  if (files.size() > 1)
    options.input = files[1];
  if (files.size() > 2)
    options.output = files[2];
  return {};
}

}  // namespace

Result<TraceconvOptions> ParseTraceconvOptions(
    const std::vector<std::string>& arguments) {
  TraceconvOptions options;
  std::vector<std::string> files;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with("--") || arguments[i] == "-h")
      HPD_TRY(ApplyFlag(options, arguments, &i));
    else
      files.push_back(arguments[i]);
  }
  if (!options.show_help && !options.show_version)
    HPD_TRY(SetFiles(options, files));
  return options;
}

std::string TraceconvHelp() {
  std::string text =
      "Converts traces: of heap_profile, and of Perfetto and Android.\n"
      "\n"
      "usage: traceconv MODE [OPTIONS] [INPUT] [OUTPUT]\n"
      "\n"
      "INPUT may be plain, gzip, zstd, several of these one behind the other, or a "
      "bundle; "
      "- or nothing is\nstandard input, and so for OUTPUT.\n"
      "\n"
      "modes:\n";
  constexpr size_t kColumn = 33;
  const auto add = [&](std::string left, const char* help) {
    left += std::string(kColumn - std::min(kColumn - 1, left.size()), ' ');
    text += left + help + "\n";
  };
  for (const Mode& mode : kModes)
    add("  " + std::string(mode.name), mode.help);
  text += "\noptions:\n";
  for (const ConvertFlag& flag : ConvertFlags()) {
    if (flag.help != nullptr)
      add("  --" + std::string(flag.name) +
              (flag.value_name != nullptr ? std::string(" ") + flag.value_name : ""),
          flag.help);
  }
  text +=
      "\n"
      "environment: PERFETTO_BINARY_PATH, PERFETTO_SYMBOLIZER_MODE and "
      "PERFETTO_PROGUARD_MAP name symbols and\nmapping files; with them profile has "
      "names "
      "too. To keep them with the trace:\n"
      "  traceconv symbolize raw-trace > symbols; cat raw-trace symbols > "
      "symbolized-trace\n";
  return text;
}

int RunTraceconv(const std::vector<std::string>& arguments) {
  Result<TraceconvOptions> options = ParseTraceconvOptions(arguments);
  Status status;
  if (!options.ok())
    status = options.status();
  else if (options.value().show_help)
    PrintText(TraceconvHelp());
  else if (options.value().show_version)
    Print(stdout, "traceconv %s\n", HPD_VERSION);
  else
    status = FindMode(options.value().mode)->run(options.value());
  if (status.ok())
    return kExitOk;
  Print(stderr, "traceconv: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace heapprofd
