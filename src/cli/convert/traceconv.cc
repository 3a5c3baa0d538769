#include "cli/convert/traceconv.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/command_table.h"
#include "cli/flag_values.h"

namespace heapprofd {
namespace {

struct Mode {
  std::string_view name;
  const char* help;
  Status (*run)(const TraceconvOptions&);
  bool writes_file;  // takes an output beside the input
};

constexpr Mode kModes[] = {
    {"profile", "heap dumps as pprof files, heap_dump.N.PID.HEAP.pb", ConvertToProfiles,
     false},
    {"java_heap_profile", "as profile --java-heap", ConvertToJavaProfiles, false},
    {"text", "the packets as protobuf text", ConvertToText, true},
    {"binary", "a trace of what text wrote", ConvertToBinary, true},
    {"decompress_packets", "the trace without compression", ConvertToPlainPackets, true},
    {"symbolize", "names and lines of its addresses, to append to it", ConvertToSymbols,
     true},
    {"deobfuscate", "names of PERFETTO_PROGUARD_MAP, to append to a trace",
     ConvertToDeobfuscation, true},
    {"bundle", "trace, symbols and mapping files in one archive", ConvertToBundle, true},
};

Status SetKind(TraceconvOptions& options, ProfileKind kind) {
  if (options.kind != ProfileKind::kDetect && options.kind != kind)
    return Invalid(
        "cannot use --alloc and --java-heap together: they name different profiles; run "
        "traceconv once for each");
  options.kind = kind;
  return {};
}

ApplyValue SetProfileKind(TraceconvOptions& options, ProfileKind kind) {
  return [&options, kind](const std::string&) { return SetKind(options, kind); };
}

Result<int64_t> WholeNumber(const std::string& flag, const std::string& text) {
  const std::optional<uint64_t> value = ParseNumber(text, INT64_MAX);
  if (!value)
    return Invalid("cannot use " + flag + " " + text +
                   ": it is no whole number from 0 to 9223372036854775807");
  return static_cast<int64_t>(*value);
}

std::vector<Flag> ProfileFlags(TraceconvOptions& options) {
  const std::string group = "profile";
  return {
      {.name = "pid",
       .value_name = "PID",
       .help = "Only dumps of this process.",
       .group = group,
       .apply =
           [&options](const std::string& text) {
             HPD_TRY_ASSIGN(options.pid, WholeNumber("--pid", text));
             return Status();
           }},
      {.name = "timestamps",
       .value_name = "T,...",
       .help = "Only dumps of these times (as the trace has them).",
       .group = group,
       .apply =
           [&options](const std::string& text) {
             for (const std::string& part : SplitList(text)) {
               HPD_TRY_ASSIGN(const int64_t ts, WholeNumber("--timestamps", part));
               options.timestamps.push_back(ts);
             }
             return options.timestamps.empty()
                        ? Invalid("cannot use --timestamps: it names no time")
                        : Status();
           }},
      {.name = "output-dir",
       .value_name = "DIR",
       .help = "Write here; default: a fresh directory.",
       .group = group,
       .apply = TextValue("--output-dir", &options.output_directory)},
      {.name = "no-annotations",
       .help = "Leave the kind of Java frames out of their names.",
       .group = group,
       .apply = Switch(&options.annotate, false)},
      {.name = "alloc",
       .help = "Native heaps; default: what the trace has.",
       .group = group,
       .apply = SetProfileKind(options, ProfileKind::kAlloc)},
      {.name = "java-heap",
       .help = "Java heaps (heap graphs).",
       .group = group,
       .apply = SetProfileKind(options, ProfileKind::kJavaHeap)},
      {.name = "perf",
       .help = "CPU profiles, which only Perfetto's own traceconv converts.",
       .group = group,
       .apply =
           [](const std::string&) {
             return Invalid(
                 "cannot convert CPU profiles: only heaps are read here; Perfetto's own "
                 "traceconv profile --perf does it");
           },
       .is_rare = true},
  };
}

std::vector<Flag> SymbolFlags(TraceconvOptions& options) {
  const std::string group = "symbolize, deobfuscate, bundle";
  return {
      {.name = "symbol-paths",
       .value_name = "DIR,...",
       .help = "symbolize, bundle: more directories with symbol files.",
       .group = group,
       .apply =
           [&options](const std::string& text) {
             options.symbol_paths = SplitList(text);
             return Status();
           }},
      {.name = "no-auto-symbol-paths",
       .help = "bundle: look for symbols in --symbol-paths only.",
       .group = group,
       .apply = Switch(&options.auto_symbol_paths, false)},
      {.name = "proguard-map",
       .value_name = "[PACKAGE=]FILE",
       .help = "deobfuscate, bundle: a mapping file; may be repeated.",
       .group = group,
       .apply = TakeWords(&options.proguard_maps)},
      {.name = "no-auto-proguard-maps",
       .help = "bundle: ignore PERFETTO_PROGUARD_MAP.",
       .group = group,
       .apply = Switch(&options.auto_proguard_maps, false)},
      {.name = "verbose",
       .help = "Say what was looked for in vain.",
       .group = group,
       .apply = Switch(&options.verbose)},
  };
}

const Mode* FindMode(std::string_view name) {
  const auto mode = std::find_if(std::begin(kModes), std::end(kModes),
                                 [&](const Mode& m) { return m.name == name; });
  return mode == std::end(kModes) ? nullptr : mode;
}

Status UnknownMode(const std::string& name) {
  Words names;
  for (const Mode& mode : kModes)
    names.emplace_back(mode.name);
  return Invalid("cannot convert to \"" + name + "\": there is no such mode; " +
                 DidYouMean(name, names, "traceconv --help lists them"));
}

Status SetFiles(TraceconvOptions& options, const std::vector<std::string>& files) {
  if (files.empty())
    return Invalid("cannot convert: no mode is named; traceconv --help lists them");
  options.mode = files[0];
  const Mode* const mode = FindMode(options.mode);
  if (mode == nullptr)
    return UnknownMode(options.mode);
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

struct State {
  TraceconvOptions options;
  Words words;
};

CommandText TextOf(const std::string& name) {
  CommandText text = {
      .name = name,
      .summary = "Converts traces: of heap_profile, and of Perfetto and Android.",
      .usage = name + " MODE [OPTIONS] [INPUT] [OUTPUT]",
      .words_title = "modes",
      .epilogue =
          "INPUT may be plain, gzip, zstd, several of these one behind the other, a\n"
          "bundle, or the directory of a recording; - or nothing is standard input, and\n"
          "so for OUTPUT, which bundle needs.\n"
          "\n"
          "environment: PERFETTO_BINARY_PATH, PERFETTO_SYMBOLIZER_MODE and\n"
          "PERFETTO_PROGUARD_MAP name symbols and mapping files; with them profile has\n"
          "names too. To keep them with the trace:\n"
          "  traceconv symbolize raw-trace > symbols\n"
          "  cat raw-trace symbols > symbolized-trace\n"};
  for (const Mode& mode : kModes)
    text.words.push_back({std::string(mode.name), mode.help});
  return text;
}

CommandLine LineOf(const std::string& name) {
  const auto state = std::make_shared<State>();
  std::vector<Flag> flags = ProfileFlags(state->options);
  const std::vector<Flag> others = SymbolFlags(state->options);
  flags.insert(flags.end(), others.begin(), others.end());
  return {.text = TextOf(name),
          .flags = std::move(flags),
          .take_word = TakeWords(&state->words),
          .run = [state]() -> Result<int> {
            HPD_TRY(SetFiles(state->options, state->words));
            HPD_TRY(FindMode(state->options.mode)->run(state->options));
            return static_cast<int>(kExitOk);
          }};
}

}  // namespace

CommandLine TraceconvLine() {
  return LineOf("heap_profile traceconv");
}

CommandLine TraceconvProgramLine() {
  return LineOf("traceconv");
}

}  // namespace heapprofd
