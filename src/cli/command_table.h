// All commands of heap_profile, and the programs that it is under another name: for each a
// row, and the function that the row names. List of commands, help, manual pages and
// completions come from here.
#pragma once

#include <array>

#include "cli/command_line.h"

namespace heapprofd {

struct Command {
  const char* name;     // the word behind heap_profile, or the program's name
  const char* summary;  // one line for the list of commands
  CommandLine (*line)();
};

CommandLine ShowLine();
CommandLine TopLine();
CommandLine StatsLine();
CommandLine DiffLine();
CommandLine LeaksLine();
CommandLine ExportLine();
CommandLine ReportCommandLine();
CommandLine ViewLine();
CommandLine QueryCommandLine();
CommandLine TraceconvLine();
CommandLine HprofLine();
CommandLine JavaLine();
CommandLine RecordConfigLine();
CommandLine MarkLine();
CommandLine DoctorLine();

// Those that are chosen by the first word.
inline constexpr auto kCommands = std::to_array<Command>({
    {"show", "Prints the summary of a recording again.", ShowLine},
    {"top", "Shows who holds memory while programs run.", TopLine},
    {"stats", "Tells the figures of a recording, and fails if asked to.", StatsLine},
    {"diff", "Tells what changed between two recordings, likewise.", DiffLine},
    {"leaks", "Shows stacks that grow or keep what they allocate.", LeaksLine},
    {"export", "Writes profiles for other programs: pprof, folded and more.", ExportLine},
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
});

CommandLine PerfettoCommandLine();
CommandLine TraceconvProgramLine();
CommandLine TraceProcessorShellLine();
CommandLine HprofConvLine();
CommandLine JavaHeapDumpLine();

// Programs that Perfetto's and Android's users know by these names.
inline constexpr auto kPrograms = std::to_array<Command>({
    {"perfetto", "", PerfettoCommandLine},
    {"traceconv", "", TraceconvProgramLine},
    {"trace_processor_shell", "", TraceProcessorShellLine},
    {"hprof-conv", "", HprofConvLine},
    {"java_heap_dump", "", JavaHeapDumpLine},
});

}  // namespace heapprofd
