// What a command line that records asks for; its flags are in cli/record/record_flags.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/recording_config.h"
#include "engine/session_config.h"

namespace heapprofd {

enum class Platform : uint8_t {
  kHost,     // this machine
  kAndroid,  // a device behind adb
};

// What only `heap_profile android` needs.
struct AndroidOptions {
  bool disable_selinux = false;
  bool package_versions = true;
  bool simpleperf = false;
  bool annotate = true;  // kinds of Java frames in pprof files
};

// What was on the command line, where the options themselves do not tell.
struct GivenFlags {
  bool block = false;
  bool no_block = false;
  bool platform = false;
  bool separator = false;
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
  bool with_java = false;               // dumps of Java heaps at the end, too
  uint32_t java_dumps = 0;              // at most so many before
  std::string generate;                 // "zsh" or "fish": print that instead
  AndroidOptions android;
  std::string converter;             // path of a traceconv for the files; empty: built in
  std::vector<std::string> notes;    // accepted without effect, one line each
  std::vector<std::string> command;  // program and arguments; empty: running processes
  GivenFlags given;
};

// Whether all of it can be meant together; adds notes. Errors are usage errors with a
// hint.
Status CheckOptions(Options& options);

// The options as a configuration, for --print-config and the service.
RecordingConfig ConfigOf(const Options& options);

// Prints to stderr what has no effect.
void PrintNotes(const std::vector<std::string>& notes);

}  // namespace heapprofd
