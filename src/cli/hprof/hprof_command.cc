// heap_profile hprof: heap dumps of virtual machines, converted, merged and examined.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/print.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/hprof/graph_trace.h"
#include "cli/hprof/hprof_report.h"
#include "cli/memory_budget.h"
#include "cli/output_file.h"
#include "hprof/convert.h"
#include "hprof/merge.h"

namespace heapprofd {
namespace {

constexpr int kExitConvFailed = 255;  // Android's program's own

struct HprofOptions {
  HprofView view;
  uint64_t dump = 0;
  bool strict = false;
  bool keep_index = false;
  bool app_heap_only = false;
  std::vector<std::string> words;
};

std::vector<CommandWord> Verbs() {
  std::vector<CommandWord> verbs = ViewWords();
  verbs.push_back({"conv", "Android's dump as others read it; -z: only the app's heap"});
  verbs.push_back({"trace", "the dump as a trace, for Perfetto's UI"});
  verbs.push_back({"merge", "the two files that Dalvik 1.0 and 1.1 write, as one"});
  return verbs;
}

Flag AppHeapFlag(HprofOptions& options) {
  return {.letter = 'z',
          .name = "app-heap-only",
          .help = "conv: only the app's own heap.",
          .group = "options",
          .apply = Switch(&options.app_heap_only)};
}

std::vector<Flag> HprofFlags(HprofOptions& options) {
  const std::string group = "options";
  std::vector<Flag> flags = DumpViewFlags(group, &options.view);
  flags.push_back(
      {.letter = 'p',
       .name = "pid",
       .value_name = "PID",
       .help = "Of a trace: only the heaps of this process.",
       .group = group,
       .apply = NumberValue("-p", &options.view.process, UINT64_MAX, "a process id")});
  flags.push_back(
      {.name = "dump",
       .value_name = "N",
       .help = "Which of several dumps in a file; the last one.",
       .group = group,
       .apply = NumberValue("--dump", &options.dump, UINT64_MAX, "a whole number")});
  flags.push_back({.name = "before",
                   .value_name = "N",
                   .help = "compare: which dump is the older one.",
                   .details = "When not said, the last one of its file, or the first "
                              "where one file is named.",
                   .group = group,
                   .apply = NumberValue("--before", &options.view.older_dump, UINT64_MAX,
                                        "a whole number")});
  flags.push_back(
      {.name = "keep-index",
       .help = "Keep what was found, in FILE.hpi.",
       .details =
           "For the next question. It has about a third of the dump's size and is used "
           "whenever it is there and fits the dump.",
       .group = group,
       .apply = Switch(&options.keep_index)});
  flags.push_back({.name = "strict",
                   .help = "A damaged dump is shown, and fails.",
                   .group = group,
                   .apply = Switch(&options.strict)});
  flags.push_back(AppHeapFlag(options));
  return flags;
}

bool AreSameFile(const std::string& a, const std::string& b) {
  struct stat one {};

  struct stat other {};

  return stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Status RefuseSameFile(const std::string& input, const std::string& output) {
  return AreSameFile(input, output)
             ? Invalid("cannot write " + output +
                       ": it is the input, too; name another output")
             : Status();
}

Status ConvertFile(const HprofOptions& options) {
  if (options.words.size() != 2)
    return Invalid(
        "cannot convert: one input and one output are needed; for example: heap_profile "
        "hprof conv dump.hprof converted.hprof");
  const std::string& input_path = options.words[0];
  const std::string& output_path = options.words[1];
  HPD_TRY(RefuseSameFile(input_path, output_path));
  HPD_TRY_ASSIGN(const hprof::MappedInput input, hprof::MappedInput::Open(input_path));
  if (!input.damage().empty())
    return Status(StatusCode::kCorrupt,
                  "cannot convert " + input_path + ": " + input.damage());
  if (IsTrace(input.bytes()))
    return Status(StatusCode::kCorrupt,
                  "cannot convert " + input_path +
                      ": it is a trace, and only hprof dumps are converted; the views of "
                      "heap_profile hprof read it as it is");
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(output_path));
  HPD_TRY_ASSIGN(
      const hprof::ConvertReport report,
      hprof::Convert(input.bytes(), input_path, {options.app_heap_only},
                     [&output](std::string_view bytes) { return output.Write(bytes); }));
  HPD_TRY(input.Check());
  if (report.was_plain)
    Print(stderr, "%s has nothing of Android's in it: the output is a copy\n",
          input_path.c_str());
  return output.Finish();
}

Status MergeFiles(const HprofOptions& options) {
  std::vector<std::string> words = options.words;
  if (words.size() == 2) {
    const std::string other = hprof::OtherHalf(words[0]);
    if (other.empty())
      return Invalid("cannot merge " + words[0] +
                     ": there is no other half of it beside it; name head, tail and "
                     "output");
    words.insert(words.begin() + 1, other);
  }
  if (words.size() != 3)
    return Invalid(
        "cannot merge: a head, a tail and an output are needed; for example: "
        "heap_profile hprof merge dump.hprof-head dump.hprof merged.hprof");
  HPD_TRY(RefuseSameFile(words[0], words[2]));
  HPD_TRY(RefuseSameFile(words[1], words[2]));
  HPD_TRY_ASSIGN(const hprof::DumpPair pair, hprof::OpenPair(words[0], words[1]));
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(words[2]));
  HPD_TRY(output.Write(pair.head.bytes()));
  HPD_TRY(output.Write(pair.tail.bytes()));
  HPD_TRY(pair.head.Check());
  HPD_TRY(pair.tail.Check());
  HPD_TRY(output.Finish());
  for (const std::string& note : pair.notes)
    Print(stderr, "%s\n", note.c_str());
  return {};
}

Status MakeTrace(const HprofOptions& options) {
  if (options.words.size() != 2)
    return Invalid(
        "cannot make a trace: one input and one output are needed; for example: "
        "heap_profile hprof trace dump.hprof dump.trace");
  HPD_TRY(RefuseSameFile(options.words[0], options.words[1]));
  HPD_TRY(UseMemoryBudget(options.view.memory_budget));
  HPD_TRY_ASSIGN(OpenedDump dump, OpenDump(options.words[0], options.dump));
  return WriteGraphTrace(std::move(dump), options.words[1], options.strict);
}

// The older one is named first; one file may have both.
Status OrderCompared(HprofOptions* options) {
  std::vector<std::string>& words = options->words;
  if (words.empty() || words.size() > 2)
    return Invalid(
        "cannot compare: two files are needed, that of the older dump first, or one with "
        "several dumps");
  if (words.size() == 2) {
    std::swap(words[0], words[1]);
    return {};
  }

  struct stat status {};

  const bool is_stream =
      stat(words[0].c_str(), &status) == 0 &&
      (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode));
  if (words[0] == "-" || is_stream)
    return Invalid("cannot compare two dumps of " + words[0] +
                   ": what comes from there is read once; name a file");
  words.push_back(words[0]);
  if (options->view.older_dump == 0)
    options->view.older_dump = 1;
  return {};
}

Status ExamineFile(HprofOptions options) {
  if (options.words.empty())
    return Invalid(
        "cannot examine: no file is named; heap_profile hprof --help shows how");
  HPD_TRY(UseMemoryBudget(options.view.memory_budget));
  const bool is_of_one_file = options.view.verb == "compare" && options.words.size() == 1;
  if (options.view.verb == "compare") {
    HPD_TRY(OrderCompared(&options));
  }
  HPD_TRY(SetObject({options.words.begin() + 1, options.words.end()}, &options.view));
  HPD_TRY_ASSIGN(std::optional<OpenedDump> older, OpenOlder(options.view));
  HPD_TRY_ASSIGN(OpenedDump dump,
                 OpenDump(options.words[0], options.dump, options.view.process));
  if (options.view.process != 0 && !dump.is_of_trace() &&
      !(older && older->is_of_trace()))
    return Invalid("cannot choose process " + std::to_string(options.view.process) +
                   " in " + dump.path +
                   ": it is an hprof dump, which is of one process; leave -p out");
  if (is_of_one_file && older->number == dump.number)
    return Invalid("cannot compare dump " + std::to_string(dump.number) + " of " +
                   dump.path +
                   " with itself: name another file, or two of its dumps with --before N "
                   "and --dump N");
  dump.keep_index = options.keep_index;
  if (older)
    older->keep_index = options.keep_index;
  HPD_TRY(PrintView(dump, std::move(older), options.view));
  if (options.strict && dump.is_damaged)
    return Status(StatusCode::kCorrupt,
                  "cannot show all of " + dump.path + ": it is damaged");
  return {};
}

Status RunOne(const std::string& verb, const HprofOptions& options) {
  if (verb.empty())
    return Invalid(
        "cannot examine: no verb is named; heap_profile hprof --help lists them");
  if (options.view.older_dump != 0 && verb != "compare")
    return Invalid("cannot use --before with " + verb +
                   ": only compare has an older dump; --dump N chooses one");
  if (options.view.process != 0 && !IsView(verb))
    return Invalid("cannot use -p with " + verb +
                   ": only what examines a trace has several processes to choose from");
  if (options.keep_index && !IsView(verb))
    return Invalid("cannot use --keep-index with " + verb +
                   ": only what examines a dump has an index of it");
  if (verb == "conv")
    return ConvertFile(options);
  if (verb == "trace")
    return MakeTrace(options);
  if (verb == "merge")
    return MergeFiles(options);
  if (IsView(verb))
    return ExamineFile(options);
  Words names;
  for (const CommandWord& known : Verbs())
    names.push_back(known.name);
  return Invalid("cannot run heap_profile hprof " + verb + ": there is no such verb; " +
                 DidYouMean(verb, names, "heap_profile hprof --help lists them"));
}

}  // namespace

CommandLine HprofLine() {
  const auto options = std::make_shared<HprofOptions>();
  return {
      .text = {.name = "heap_profile hprof",
               .summary =
                   "Examines heaps of Java: in hprof dumps, of HotSpot and Android, and "
                   "in traces.",
               .usage = ViewUsage("heap_profile hprof", "FILE") +
                        "\nheap_profile hprof conv [-z]|trace INPUT OUTPUT\n"
                        "heap_profile hprof merge HEAD [TAIL] OUTPUT",
               .words_title = "verbs",
               .words = Verbs(),
               .epilogue = "- is standard input or output. A class stands for the "
                           "object of it that\nretains most; for find for all.\n"
                           "\n"
                           "FILE may be a trace with heap graphs, as Perfetto and hprof "
                           "trace make them.\nIts objects are named id=N instead of by "
                           "an address. strings, threads,\ncollections and FIELD=VALUE "
                           "need a dump: a trace has no values of fields.\n"},
      .flags = HprofFlags(*options),
      .take_word = TakeWords(&options->words),
      .run = [options]() -> Result<int> {
        Words& words = options->words;
        std::string& verb = options->view.verb;
        verb = words.empty() ? "" : words[0];
        words.erase(words.begin(), words.begin() + (words.empty() ? 0 : 1));
        HPD_TRY(RunOne(verb, *options));
        return static_cast<int>(kExitOk);
      }};
}

// As Android's program of this name: exit codes too.
CommandLine HprofConvLine() {
  const auto options = std::make_shared<HprofOptions>();
  return {.text = {.name = "hprof-conv",
                   .summary = "Makes an ordinary heap dump of Android's.",
                   .usage = "hprof-conv [-z] INPUT OUTPUT"},
          .flags = {AppHeapFlag(*options)},
          .take_word = TakeWords(&options->words),
          .run = [options]() -> Result<int> {
            HPD_TRY(ConvertFile(*options));
            return static_cast<int>(kExitOk);
          },
          .failure_code = kExitConvFailed};
}

}  // namespace heapprofd
