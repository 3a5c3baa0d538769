#include "cli/record/device_files.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/run_command.h"
#include "export/gzip.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr char kProfiles[] = "profiles";

bool RunConverter(const DeviceFiles& files, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {files.converter};
  if (files.converter.empty())
    command = {"/proc/self/exe", "traceconv"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  sigset_t none;
  sigemptyset(&none);
  // It may be told of descriptors.
  const bool is_retold = files.directory.PathForPrograms("") != files.directory.path();
  Result<RunningCommand> running = RunningCommand::Start(
      command, none, {.with_errors = is_retold, .ends_with_us = is_retold});
  if (!running.ok())
    return false;
  const Result<CommandResult> result = running.value().Await({});
  if (is_retold && result.ok() && !result.value().output.empty())
    PrintLines(stderr, files.directory.Told(result.value().output) + "\n");
  return result.ok() && result.value().exit_code == 0;
}

bool IsSet(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != 0;
}

std::string ReadAll(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Packets that belong behind the trace, when `variable` asks for them; "" when there are
// none.
std::string AddedPackets(const DeviceFiles& files,
                         const char* variable,
                         const std::string& mode,
                         const std::string& name) {
  if (!IsSet(variable))
    return "";
  if (!RunConverter(files, {mode, files.directory.PathForPrograms("raw-trace"),
                            files.directory.PathForPrograms(name)})) {
    Print(stderr, "heap_profile: note: traceconv %s has failed; going on without %s\n",
          mode.c_str(), name.c_str());
    return "";
  }
  return ReadAll(files.directory.Place(name).at);
}

// Name of the trace with everything that was added to it; of the trace itself when that is
// nothing.
std::string CompleteTrace(const DeviceFiles& files) {
  std::string raw = "raw-trace";
  const std::string added =
      AddedPackets(files, "PERFETTO_BINARY_PATH", "symbolize", "symbols") +
      AddedPackets(files, "PERFETTO_PROGUARD_MAP", "deobfuscate",
                   "deobfuscation-packets");
  if (!IsSet("PERFETTO_BINARY_PATH") && !IsSet("PERFETTO_PROGUARD_MAP"))
    return raw;
  std::string complete = "symbolized-trace";
  const std::string place = files.directory.Place(complete).at;
  std::error_code error;
  fs::copy_file(files.directory.Place(raw).at, place, error);
  std::ofstream(place, std::ios::binary | std::ios::app) << added;
  return error ? raw : complete;
}

// Compressed and beside the trace, as heap_dump.*.pb.gz; their number.
size_t CollectProfiles(const OutputDirectory& directory) {
  const std::string from = directory.Place(kProfiles).at;
  size_t count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("heap_dump."))
      continue;
    ++count;
    const FilePlace target = directory.Place(name);
    if (name.ends_with(".gz"))
      fs::rename(entry.path(), target.at, error);
    else if (WriteGzipFile(directory.Place(name + ".gz"), ReadAll(entry.path())).ok())
      fs::remove(entry.path(), error);
  }
  fs::remove(from, error);  // unless something is left in it
  return count;
}

}  // namespace

int ConvertDeviceTrace(const DeviceFiles& files) {
  const std::string trace = CompleteTrace(files);
  std::vector<std::string> arguments = {"profile", "--output-dir",
                                        files.directory.PathForPrograms(kProfiles)};
  if (!files.annotate)
    arguments.emplace_back("--no-annotations");
  arguments.push_back(files.directory.PathForPrograms(trace));
  const bool is_converted = RunConverter(files, arguments);
  const size_t count = CollectProfiles(files.directory);
  if (!is_converted)
    Print(stderr,
          "heap_profile: note: no pprof files could be made of %s; it opens in "
          "ui.perfetto.dev\n",
          files.directory.Place(trace).path.c_str());
  if (!files.quiet)
    Print(stderr, "Wrote %s to %s\n", count > 0 ? "profiles" : "profile",
          files.directory.path().c_str());
  return kExitOk;
}

}  // namespace heapprofd
