#include "cli/commands.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/completions.h"
#include "cli/convert/traceconv.h"
#include "cli/device/java_heap_dump_command.h"
#include "cli/doctor.h"
#include "cli/hprof/hprof_command.h"
#include "cli/hprof/java_command.h"
#include "cli/inspect/diff_command.h"
#include "cli/inspect/export_command.h"
#include "cli/inspect/leaks_command.h"
#include "cli/inspect/show_command.h"
#include "cli/inspect/stats_command.h"
#include "cli/mark_command.h"
#include "cli/query/query_command.h"
#include "cli/record/record_command.h"
#include "cli/record/record_config.h"
#include "cli/report_command.h"
#include "cli/top/top_command.h"
#include "cli/view/view_command.h"

namespace heapprofd {
namespace {

// Programs that Perfetto's and Android's users know by these names.
const std::vector<Command>& Programs() {
  static const std::vector<Command> programs = {
      {"perfetto", "", PerfettoCommandLine},
      {"traceconv", "", TraceconvProgramLine},
      {"trace_processor_shell", "", TraceProcessorShellLine},
      {"hprof-conv", "", HprofConvLine},
      {"java_heap_dump", "", JavaHeapDumpLine},
  };
  return programs;
}

const Command* Find(const std::vector<Command>& commands, const std::string& name) {
  const auto found =
      std::find_if(commands.begin(), commands.end(),
                   [&](const Command& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

// The recording, with the list of the commands.
CommandLine WholeProgram() {
  CommandLine line = RecordingLine();
  line.text.words_title = "commands";
  for (const Command& command : Commands())
    line.text.words.push_back({command.name, command.summary});
  return line;
}

// "help query" is "query --help".
Result<int> TellHelp(const Words& words) {
  if (words.size() > 1)
    return Invalid("cannot help with \"" + words[1] +
                   "\": help takes one command; ask for each by itself");
  if (words.empty())
    return RunCommandLine(WholeProgram(), {"--help"});
  if (const Command* const command = Find(Commands(), words[0]))
    return RunCommandLine(command->line(), {"--help"});
  if (IsCommandName(words[0]))
    return RunCommandLine(WholeProgram(), {"--help"});  // of which these are a part
  return Invalid("cannot help with \"" + words[0] + "\": there is no such command; " +
                 DidYouMean(words[0], CommandNames(), "heap_profile --help lists them"));
}

CommandLine HelpLine() {
  const auto words = std::make_shared<Words>();
  return {.text = {.name = "heap_profile help",
                   .summary = "Shows the help of a command, or of heap_profile itself.",
                   .usage = "heap_profile help [COMMAND]",
                   .epilogue = ""},
          .flags = {},
          .take_word = TakeWords(words.get()),
          .run = [words] { return TellHelp(*words); }};
}

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"show", "Prints the summary of a recording again.", ShowLine},
      {"top", "Shows who holds memory while programs run.", TopLine},
      {"stats", "Tells the figures of a recording, and fails if asked to.", StatsLine},
      {"diff", "Tells what changed between two recordings, likewise.", DiffLine},
      {"leaks", "Shows stacks that grow or keep what they allocate.", LeaksLine},
      {"export", "Writes profiles as pprof, folded, speedscope or CSV.", ExportLine},
      {"report", "Shows profiles in a page for a browser.", ReportCommandLine},
      {"view", "Shows them so with SQL and source lines, from a server here.", ViewLine},
      {"query", "Asks profiles questions in SQL.", QueryCommandLine},
      {"traceconv", "Converts traces: to pprof, text, bundles and more.", TraceconvLine},
      {"hprof", "Examines heap dumps of Java.", HprofLine},
      {"java", "Shows the heap of a running Java virtual machine.", JavaLine},
      {"record", "Records what a trace configuration asks for.", RecordConfigLine},
      {"mark", "Adds a dump with a name to what is recorded now.", MarkLine},
      {"doctor", "Tells what can be recorded here, and what to do about the rest.",
       DoctorLine},
  };
  return commands;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names = {"host", "android", "help"};
  for (const Command& command : Commands())
    names.push_back(command.name);
  return names;
}

bool IsCommandName(const std::string& word) {
  const std::vector<std::string> names = CommandNames();
  return std::find(names.begin(), names.end(), word) != names.end();
}

DescribedCommand WholeProgramHelp() {
  return Described(WholeProgram());
}

Result<std::string> GeneratedText(const std::string& what) {
  CompletedProgram whole = {.described = WholeProgramHelp()};
  for (const Command& command : Commands())
    whole.commands.push_back({command.name, Described(command.line())});
  for (const char* word : {"host", "android"})
    whole.described.text.words.push_back({word, ""});
  std::vector<CompletedProgram> programs = {std::move(whole)};
  for (const Command& program : Programs())
    programs.push_back({.described = Described(program.line())});
  return Completions(what, programs);
}

int RunHeapProfile(const std::string& program, const Words& arguments) {
  if (const Command* const named = Find(Programs(), program))
    return RunCommandLine(named->line(), arguments);
  if (arguments.empty())
    return RunCommandLine(WholeProgram(), arguments);
  const Words rest(arguments.begin() + 1, arguments.end());
  if (const Command* const command = Find(Commands(), arguments[0]))
    return RunCommandLine(command->line(), rest);
  return RunCommandLine(arguments[0] == "help" ? HelpLine() : WholeProgram(),
                        arguments[0] == "help" ? rest : arguments);
}

}  // namespace heapprofd
