// The command line of heap_profile: the verb, and for the verbs that record one table of
// flags from which everything else comes (cli/flag_table.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/flag_table.h"
#include "config/recording_config.h"
#include "engine/session_config.h"

namespace heapprofd {

enum class Platform : uint8_t {
  kHost,     // this machine
  kAndroid,  // a device behind adb
};

enum class HelpRequest : uint8_t { kNone, kShort, kLong };

// What only `heap_profile android` needs.
struct AndroidOptions {
  bool disable_selinux = false;
  bool package_versions = true;
  bool simpleperf = false;
  bool annotate = true;  // kinds of Java frames in pprof files
};

struct Options {
  Platform platform = Platform::kHost;
  SessionConfig session;
  std::optional<uint64_t> duration_ms;  // 0: until stopped
  std::string output_directory;         // empty: a fresh one is made
  uint32_t top = 10;                    // rows of the summary
  bool quiet = false;                   // no status line, no summary
  bool with_report = true;              // a page beside the trace
  bool print_config = false;            // instead of recording
  bool may_stand_in = true;             // for a service that does not run
  HelpRequest help = HelpRequest::kNone;
  bool show_version = false;
  std::string generate;  // "zsh" or "fish": print that instead
  AndroidOptions android;
  std::string converter;             // path of a traceconv for the files; empty: built in
  std::vector<std::string> notes;    // accepted without effect, one line each
  std::vector<std::string> command;  // program and arguments; empty: running processes
};

// Exit codes that are the tool's own (the program's code is passed through otherwise).
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,       // the environment did not allow it
  kExitUsage = 2,         // wrong command line
  kExitCannotRun = 126,   // the program exists but cannot be executed
  kExitNoProgram = 127,   // the program was not found
  kExitSignalBase = 128,  // + signal number: the program was killed
};

// `arguments` without the tool's own name. Errors are usage errors with a hint.
Result<Options> ParseOptions(const std::vector<std::string>& arguments);

// The options as a configuration, for --print-config and the service.
RecordingConfig ConfigOf(const Options& options);

// Text made from the flag table: "help", "short-help", "zsh" or "fish".
std::string GeneratedText(const std::string& what);

// Prints to stderr what has no effect.
void PrintNotes(const std::vector<std::string>& notes);

}  // namespace heapprofd
