// What is asked of a recording, whoever asks: the command line, a TraceConfig in text or
// binary form, or a client of the service. TraceConfig is the one form in which all of it
// is written down (proto/config.proto).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/session_config.h"

namespace heapprofd {

struct RecordingConfig {
  std::vector<SessionConfig> sessions;  // one per heapprofd data source
  uint64_t duration_ms = 0;             // 0: until stopped
  uint64_t max_file_bytes = 0;          // the recording stops at this size; 0: none
  std::string unique_name;              // a second recording of this name is refused
  std::string output_path;              // of the trace; empty: the caller's choice
  // What else the TraceConfig holds, in binary form: buffers, other data sources. Empty:
  // nothing.
  std::string rest;
  // What was asked for and cannot be had here, one line each, for people.
  std::vector<std::string> notes;
};

enum class ConfigForm : uint8_t {
  kDetect,     // binary when it holds control characters
  kText,       // protobuf text format
  kTextLossy,  // the same; unknown fields are skipped
  kBinary,
};

// Reads and checks a TraceConfig. Errors name the field.
Result<RecordingConfig> ParseTraceConfig(std::string_view bytes, ConfigForm form);

// The rules for one session; targets may be none, when a program is to be started.
Status CheckSessionConfig(const SessionConfig& config);

// Every rule that a configuration without a program of its own must obey.
Status CheckRecordingConfig(const RecordingConfig& config);

// Text form, as heap_profile --print-config shows it: ParseTraceConfig gives the same
// configuration back.
std::string PrintTraceConfig(const RecordingConfig& config);

// Binary form.
std::string SerializeTraceConfig(const RecordingConfig& config);

}  // namespace heapprofd
