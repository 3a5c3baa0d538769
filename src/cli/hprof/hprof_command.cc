#include "cli/hprof/hprof_command.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/print.h"
#include "cli/hprof/hprof_report.h"
#include "cli/output_file.h"
#include "cli/record/options.h"
#include "cli/results/finish.h"
#include "hprof/convert.h"
#include "hprof/merge.h"

namespace heapprofd {
namespace {

constexpr int kExitConvFailed = 255;  // Android's program's own

constexpr char kHprofHelp[] =
    "Examines heap dumps of Java virtual machines (hprof): of HotSpot and of Android,\n"
    "plain or gzip.\n"
    "\n"
    "usage: heap_profile hprof histogram [--retained] FILE\n"
    "       heap_profile hprof leaks FILE\n"
    "       heap_profile hprof dominators FILE [ADDRESS|CLASS]\n"
    "       heap_profile hprof path FILE ADDRESS|CLASS\n"
    "       heap_profile hprof compare [--retained] OLDER NEWER\n"
    "       heap_profile hprof conv [-z] INPUT OUTPUT\n"
    "       heap_profile hprof merge HEAD [TAIL] OUTPUT\n"
    "\n"
    "  histogram   objects and bytes of each class; --retained: and what would be freed\n"
    "              with them\n"
    "  leaks       where memory has piled up, what of, and what holds it\n"
    "  dominators  the objects that retain most; of an object: what it alone holds\n"
    "  path        the shortest way from a root to an object: why it is still there\n"
    "  compare     what classes have more and less from one dump to another\n"
    "  conv        Android's dump as others read it; -z: only the app's own heap\n"
    "  merge       the two files that Dalvik 1.0 and 1.1 write, as one\n"
    "\n"
    "options: --json            for programs\n"
    "         --top N           so many rows, 20 when not said; 0: all\n"
    "         --dump N          of several dumps in a file; the last one when not said\n"
    "         --strict          a damaged dump is shown as far as it goes, and fails\n"
    "\n"
    "- is standard input or output. A class stands for the object of it that retains\n"
    "most.\n";

struct HprofOptions {
  HprofView view;
  uint64_t dump = 0;
  bool strict = false;
  bool app_heap_only = false;
  bool show_help = false;
  std::vector<std::string> words;
};

Result<uint64_t> NumberBehind(const std::vector<std::string>& arguments, size_t* index) {
  const std::string& name = arguments[*index];
  if (*index + 1 >= arguments.size())
    return Invalid("cannot use " + name + ": its number is missing");
  const std::string& text = arguments[++*index];
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Invalid("cannot use " + name + " " + text + ": it is no whole number");
  return value;
}

Result<HprofOptions> ParseHprofOptions(const std::vector<std::string>& arguments) {
  HprofOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--top") {
      HPD_TRY_ASSIGN(options.view.top, NumberBehind(arguments, &i));
    } else if (word == "--dump") {
      HPD_TRY_ASSIGN(options.dump, NumberBehind(arguments, &i));
    } else if (word == "--json") {
      options.view.json = true;
    } else if (word == "--retained") {
      options.view.retained = true;
    } else if (word == "--strict") {
      options.strict = true;
    } else if (word == "-z") {
      options.app_heap_only = true;
    } else if (word == "--help" || word == "-h") {
      options.show_help = true;
    } else if (word.size() > 1 && word[0] == '-') {
      return Invalid("cannot use option " + word +
                     ": there is none of this name; heap_profile hprof --help lists all");
    } else {
      options.words.push_back(word);
    }
  }
  return options;
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
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::Create(output_path));
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
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::Create(words[2]));
  HPD_TRY(output.Write(pair.head.bytes()));
  HPD_TRY(output.Write(pair.tail.bytes()));
  HPD_TRY(pair.head.Check());
  HPD_TRY(pair.tail.Check());
  HPD_TRY(output.Finish());
  for (const std::string& note : pair.notes)
    Print(stderr, "%s\n", note.c_str());
  return {};
}

Status ExamineFile(HprofOptions options) {
  if (options.words.empty())
    return Invalid(
        "cannot examine: no file is named; heap_profile hprof --help shows how");
  if (options.view.verb == "compare") {  // the older one is named first
    if (options.words.size() != 2 || options.dump != 0)
      return Invalid(
          "cannot compare: two files are needed, that of the older dump first, of which "
          "the last dumps are meant");
    std::swap(options.words[0], options.words[1]);
  }
  HPD_TRY(SetObject({options.words.begin() + 1, options.words.end()}, &options.view));
  HPD_TRY_ASSIGN(std::optional<OpenedDump> older, OpenOlder(options.view));
  HPD_TRY_ASSIGN(OpenedDump dump, OpenDump(options.words[0], options.dump));
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
  if (verb == "conv")
    return ConvertFile(options);
  if (verb == "merge")
    return MergeFiles(options);
  if (IsView(verb))
    return ExamineFile(options);
  return Invalid("cannot run heap_profile hprof " + verb +
                 ": there is no such verb; heap_profile hprof --help lists them");
}

}  // namespace

int RunHprofVerb(const std::vector<std::string>& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments[0];
  Result<HprofOptions> options = ParseHprofOptions(
      {arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
  if (!options.ok())
    return Fail(options.status());
  if (verb == "--help" || verb == "-h" || options.value().show_help) {
    PrintText(kHprofHelp);
    return kExitOk;
  }
  options.value().view.verb = verb;
  const Status status = RunOne(verb, options.value());
  return status.ok() ? static_cast<int>(kExitOk) : Fail(status);
}

int RunHprofConv(const std::vector<std::string>& arguments) {
  Result<HprofOptions> options = ParseHprofOptions(arguments);
  if (options.ok() && options.value().show_help) {
    PrintText("usage: hprof-conv [-z] INPUT OUTPUT\n");
    return kExitOk;
  }
  const Status status = options.ok() ? ConvertFile(options.value()) : options.status();
  if (status.ok())
    return kExitOk;
  Print(stderr, "hprof-conv: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? static_cast<int>(kExitUsage)
                                                       : kExitConvFailed;
}

}  // namespace heapprofd
