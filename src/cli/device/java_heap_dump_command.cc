// java_heap_dump: Perfetto's tool of this name. Has Perfetto on a device write graphs of
// the heaps of Java programs, and fetches the trace.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/private_directory.h"
#include "base/files/temporary_directory.h"
#include "base/print.h"
#include "base/random_seed.h"
#include "base/scoped_fd.h"
#include "cli/command_table.h"
#include "cli/device/device_trace.h"
#include "cli/flag_values.h"
#include "cli/output_file.h"
#include "config/java_hprof_config.h"

namespace heapprofd {
namespace {

constexpr char kOptions[] = "options";
constexpr char kOfUserNames[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr size_t kCopiedAtOnce = 1 << 16;
constexpr int kFirstVersionThatStops = 31;  // of the SDK: Android 12

struct HeapGraphOptions {
  JavaHprofOptions config;
  std::optional<bool> stops_when_done;  // else the device's version says so
  std::string output;
  bool print_config = false;
};

CommandText HeapGraphCommand() {
  return {.name = "java_heap_dump",
          .summary =
              "Writes the graph of the heap of a Java program on an Android device, as "
              "Perfetto's tool of this name does. With field values, and as a table: "
              "heap_profile java android.",
          .usage = "java_heap_dump -n NAMES|-p PIDS [-o FILE]"};
}

std::vector<Flag> HeapGraphTargets(HeapGraphOptions* options) {
  return {{.letter = 'p',
           .name = "pid",
           .value_name = "PIDS",
           .help = "Processes on the device, by their numbers.",
           .group = kOptions,
           .apply = PidList("--pid", &options->config.pids)},
          {.letter = 'n',
           .name = "name",
           .value_name = "NAMES",
           .help = "Processes on the device, by their names.",
           .group = kOptions,
           .apply = ListValue("--name", &options->config.names)},
          {.letter = 'o',
           .name = "output",
           .value_name = "FILE",
           .help = "The trace; a new file in TMPDIR when not said.",
           .group = kOptions,
           .apply = TextValue("--output", &options->output)}};
}

std::vector<Flag> HeapGraphSettings(HeapGraphOptions* options) {
  JavaHprofOptions* const config = &options->config;
  const ApplyValue when_done = [options](const std::string&) {
    options->stops_when_done = true;
    return Status();
  };
  const ApplyValue fixed = [options](const std::string&) {
    options->stops_when_done = false;
    return Status();
  };
  return {{.letter = 'c',
           .name = "continuous-dump",
           .value_name = "MS",
           .help = "One more dump each so often, for 20 seconds; 0: none.",
           .group = kOptions,
           .apply = NumberValue("--continuous-dump", &config->dump_interval_ms,
                                UINT32_MAX, "a number of milliseconds")},
          {.name = "no-versions",
           .help = "Leave out the versions of packages.",
           .group = kOptions,
           .apply = Switch(&config->with_packages, false)},
          {.name = "dump-smaps",
           .help = "Also what the device's kernel tells of the process's memory.",
           .group = kOptions,
           .apply = Switch(&config->with_smaps)},
          {.name = "stop-when-done",
           .help = "End with the dump: usual from Android 12 on without -c.",
           .group = kOptions,
           .apply = when_done},
          {.name = "no-stop-when-done",
           .help = "End after 20 seconds.",
           .group = kOptions,
           .apply = fixed},
          {.name = "print-config",
           .help = "Print what the device would be asked for, and end.",
           .group = kOptions,
           .apply = Switch(&options->print_config)}};
}

std::vector<Flag> HeapGraphFlags(HeapGraphOptions* options) {
  std::vector<Flag> flags = HeapGraphTargets(options);
  for (const Flag& flag : HeapGraphSettings(options))
    flags.push_back(flag);
  return flags;
}

// An empty file of its own, to be replaced.
Result<std::string> FreshFile() {
  std::string path = ChosenTemporaryDirectory() + "/java-profile-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0)
    return Status::FromErrno("cannot create " + path, errno);
  close(fd);
  return path;
}

// What ends with a dump has no time for another one.
std::string ConfigText(const HeapGraphOptions& options, int sdk) {
  JavaHprofOptions config = options.config;
  config.stops_when_done = options.stops_when_done.value_or(
      sdk >= kFirstVersionThatStops && config.dump_interval_ms == 0);
  return PrintJavaHprofConfig(config);
}

// Of a file that nobody else has; where it cannot be removed, the same one each time.
Result<std::string> TraceName(const DeviceTrace& trace) {
  if (trace.CanRemove())
    return std::to_string(RandomSeed());
  HPD_TRY_ASSIGN(std::string user, trace.adb().Shell("whoami"));
  const bool is_name =
      !user.empty() && user.find_first_not_of(kOfUserNames) == std::string::npos;
  return is_name ? std::move(user) : std::string("user");
}

Status CopyTo(OutputFile& output, const std::string& path) {
  const ScopedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid())
    return Status::FromErrno("cannot open " + path, errno);
  std::vector<char> bytes(kCopiedAtOnce);
  while (true) {
    const ssize_t length = read(file.get(), bytes.data(), bytes.size());
    if (length < 0)
      return Status::FromErrno("cannot read " + path, errno);
    if (length == 0)
      return output.Finish();
    HPD_TRY(output.Write({bytes.data(), static_cast<size_t>(length)}));
  }
}

// adb would follow links, with our rights: it writes where only we may.
Status PullInto(OutputFile& output,
                const PrivateDirectory& directory,
                DeviceTrace& trace) {
  const std::string path = directory.path() + "/trace";
  HPD_TRY(trace.Pull(path));
  if (const Status copied = CopyTo(output, path); !copied.ok())
    return Status(copied.code(), copied.message() + "; adb pull " + trace.path() +
                                     " fetches the trace to another place");
  trace.RemoveThere();
  return {};
}

Status RecordHeapGraph(const HeapGraphOptions& options, const std::string& path) {
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(path));
  HPD_TRY_ASSIGN(const PrivateDirectory directory,
                 PrivateDirectory::Create("heap_profile-trace"));
  DeviceTrace trace("Dumping Java Heap.");
  HPD_TRY(trace.Explained(trace.Reach()));
  Result<std::string> name = TraceName(trace);
  HPD_TRY(trace.Explained(name.status()));
  HPD_TRY(trace.Explained(
      trace.Start(ConfigText(options, trace.sdk()), "java-profile-" + name.value())));
  HPD_TRY(trace.Explained(trace.AwaitEnd()));
  return trace.Explained(PullInto(output, directory, trace));
}

Status RunJavaHeapDump(const HeapGraphOptions& options) {
  if (options.config.pids.empty() && options.config.names.empty())
    return Invalid("cannot dump a heap: neither -p nor -n is given");
  if (options.print_config) {
    PrintText(ConfigText(options, kFirstVersionThatStops));
    return {};
  }
  umask(077);  // adb's file is for its owner, too
  std::string path = options.output;
  if (path.empty()) {
    HPD_TRY_ASSIGN(path, FreshFile());
  }
  Status status = RecordHeapGraph(options, path);
  if (!status.ok()) {
    if (options.output.empty())
      unlink(path.c_str());
    return status;
  }
  Print(path == "-" ? stderr : stdout,
        "Wrote profile to %s\n"
        "traceconv java_heap_profile makes pprof files of it, heap_profile query asks it "
        "in SQL,\nand https://ui.perfetto.dev shows it.\n",
        path == "-" ? "standard output" : path.c_str());
  return {};
}

}  // namespace

CommandLine JavaHeapDumpLine() {
  const auto options = std::make_shared<HeapGraphOptions>();
  return {.text = HeapGraphCommand(),
          .flags = HeapGraphFlags(options.get()),
          .run = [options]() -> Result<int> {
            HPD_TRY(RunJavaHeapDump(*options));
            return static_cast<int>(kExitOk);
          }};
}

}  // namespace heapprofd
