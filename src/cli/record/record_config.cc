// `heap_profile record` and the compatibility name `perfetto`: recordings described by a
// trace configuration.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd_path.h"
#include "base/files/named_output.h"
#include "base/files/own_file.h"
#include "base/files/temporary_directory.h"
#include "base/files/write_all.h"
#include "base/print.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/record/options.h"
#include "cli/record/output_directory.h"
#include "cli/record/remote_recording.h"
#include "cli/report_command.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

struct RecordOptions {
  std::string config_path;
  std::string output;
  ConfigForm form = ConfigForm::kDetect;
  bool background = false;
  bool quiet = false;
  bool may_start_service = true;
  bool with_report = true;
};

std::vector<Flag> ConfigFlags(RecordOptions& options, bool to_file) {
  const std::string group = "options";
  std::vector<Flag> flags = {
      {.letter = 'c',
       .name = "config",
       .value_name = "FILE",
       .help = "Trace configuration, text or binary; - reads it from standard input.",
       .group = group,
       .apply = TextValue("--config", &options.config_path)},
      {.name = "txt",
       .help = "The configuration is text. Found out by itself otherwise.",
       .group = group,
       .apply =
           [&options](const std::string&) {
             options.form = ConfigForm::kText;
             return Status();
           }},
      {.name = "txt-lossy",
       .help = "The same; unknown fields are skipped.",
       .group = group,
       .apply =
           [&options](const std::string&) {
             options.form = ConfigForm::kTextLossy;
             return Status();
           }},
      {.letter = 'o',
       .name = to_file ? "out" : "output",
       .value_name = to_file ? "FILE" : "DIRECTORY",
       .help = to_file ? "Write the trace here; - writes to standard output."
                       : "Write the profile here; must be empty or not exist.",
       .group = group,
       .apply = TextValue(to_file ? "--out" : "--output", &options.output)},
      {.letter = 'd',
       .name = "background",
       .help = "Record in the background; prints the process id once it has begun.",
       .group = group,
       .apply = Switch(&options.background)},
      {.letter = 'D',
       .name = "background-wait",
       .help = "The same.",
       .group = group,
       .apply = Switch(&options.background)},
      {.letter = 'q',
       .name = "quiet",
       .help = "Print nothing but errors.",
       .group = group,
       .apply = Switch(&options.quiet)},
      {.name = "no-start",
       .help = "Use a running heapprofd only; do not stand in for it.",
       .group = group,
       .apply = Switch(&options.may_start_service, false)},
  };
  if (!to_file)
    flags.push_back({.name = "no-report",
                     .help = "Do not make report.html, the page beside the trace.",
                     .group = group,
                     .apply = Switch(&options.with_report, false)});
  return flags;
}

Result<std::string> ReadConfig(const std::string& path) {
  const ScopedFd opened(path == "-" ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (path != "-" && !opened.valid())
    return Status::FromErrno("cannot open trace configuration " + path, errno);
  const int fd = path == "-" ? STDIN_FILENO : opened.get();
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (bytes.size() <= kMaxConfigBytes) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::FromErrno("cannot read trace configuration " + path, errno);
    if (got == 0)
      break;
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
  return bytes;
}

std::string RealPath(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return realpath(path.c_str(), real.data()) != nullptr ? real.data() : path;
}

Result<ScopedFd> OpenStream(const std::string& path) {
  if (path != "-")
    return OpenNamedStream(path);
  ScopedFd standard_output(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!standard_output.valid())
    return Status::FromErrno("cannot write to standard output", errno);
  return standard_output;
}

Status CheckIsNoTerminal(const RemoteRequest& request, const ScopedFd& stream) {
  if (!stream.valid() || isatty(stream.get()) == 0)
    return {};
  return Status(StatusCode::kInvalidArgument,
                "cannot write the trace to " + request.trace_path +
                    ": it is a terminal, and a trace is no text; name a file by -o");
}

// A service writes to files only: what is for a pipe, or a terminal, waits in one.
Status OpenTraceFile(const std::string& path, RemoteRequest* request, ScopedFd* stream) {
  request->trace_path = path == "-" ? "standard output" : path;
  HPD_TRY_ASSIGN(*stream, OpenStream(path));
  HPD_TRY(CheckIsNoTerminal(*request, *stream));
  if (!stream->valid()) {
    HPD_TRY_ASSIGN(request->trace, OpenForWriting(path));
    return {};
  }
  const std::string directory = NamelessDirectory();
  request->trace =
      ScopedFd(open(directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  return request->trace.valid()
             ? Status()
             : Status::FromErrno("cannot create a file in " + directory, errno);
}

Status CopyTrace(const RemoteRequest& request, int stream) {
  std::string buffer(65536, '\0');
  lseek(request.trace.get(), 0, SEEK_SET);
  for (ssize_t got = 0;
       (got = read(request.trace.get(), buffer.data(), buffer.size())) > 0;) {
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    if (const int error = WriteAll(stream, bytes); error != 0)
      return Status::FromErrno("cannot write the trace to " + request.trace_path, error);
  }
  return {};
}

// `stream`: where the trace is to be copied at the end; invalid: nowhere.
Status OpenOutput(const RecordOptions& options,
                  bool to_file,
                  RemoteRequest* request,
                  ScopedFd* stream) {
  if (to_file) {
    const std::string path =
        options.output.empty() ? request->config.output_path : options.output;
    if (path.empty())
      return Status(StatusCode::kInvalidArgument,
                    "cannot record: no output is named; use -o FILE");
    return OpenTraceFile(path, request, stream);
  }
  HPD_TRY_ASSIGN(request->directory, OutputDirectory::Create(options.output));
  request->directory->set_path(RealPath(FdPath(request->directory->fd())));
  const FilePlace place = request->directory->Place("raw-trace");
  request->trace_path = place.path;
  HPD_TRY_ASSIGN(request->trace, OpenForWriting(place));
  return {};
}

// Nobody who waits for the end of our output waits for the recording.
void LeaveTerminal() {
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(null, fd);
}

// What the child says: nothing is wrong, or what is.
Status AwaitStart(int fd) {
  std::string message;
  std::array<char, 1024> buffer{};
  for (ssize_t got = 0; (got = read(fd, buffer.data(), buffer.size())) > 0;)
    message.append(buffer.data(), static_cast<size_t>(got));
  if (message.size() == 1 && message[0] == 0)
    return {};
  return Status(StatusCode::kUnavailable,
                message.empty() ? "cannot record: the recorder has ended" : message);
}

int RecordAndReport(const RemoteRequest& request, bool with_report) {
  const RecordingOutcome outcome = RecordRemotely(request);
  int report = kExitOk;
  if (with_report && outcome.is_awaited)
    report = MakeReportBeside(request.directory->Place("raw-trace"),
                              outcome.has_whole_trace, request.quiet);
  else if (with_report)
    PrintNoReport("the service still writes the trace", /*has_whole_trace=*/false,
                  request.trace_path);
  return outcome.exit_code == kExitOk ? report : outcome.exit_code;
}

// The recording goes on in a child; the parent tells its process id and leaves.
int RecordInBackground(RemoteRequest request, bool with_report) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0)
    return Fail(Status::FromErrno("cannot create a pipe", errno));
  const ScopedFd read_end(pipe_fds[0]);
  ScopedFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0)
    return Fail(Status::FromErrno("cannot start a process", errno));
  if (pid == 0) {
    LeaveTerminal();
    request.started_fd = write_end.get();
    _exit(RecordAndReport(request, with_report));
  }
  write_end.reset();
  if (const Status status = AwaitStart(read_end.get()); !status.ok())
    return Fail(status);
  Print(stdout, "%d\n", pid);
  return kExitOk;
}

int Record(const RecordOptions& options, bool to_file) {
  Result<std::string> bytes = ReadConfig(options.config_path);
  if (!bytes.ok())
    return Fail(bytes.status());
  Result<RecordingConfig> config = ParseTraceConfig(bytes.value(), options.form);
  if (!config.ok())
    return Fail(config.status());
  PrintNotes(config.value().notes);
  RemoteRequest request;
  request.config = std::move(config).value();
  request.quiet = options.quiet || to_file;
  ScopedFd stream;
  if (const Status status = OpenOutput(options, to_file, &request, &stream); !status.ok())
    return Fail(status);
  request.may_start_service = options.may_start_service;
  const bool with_report = options.with_report && !to_file;
  if (options.background && stream.valid())
    return Fail(Invalid("cannot record in the background to " + request.trace_path +
                        ": it is no file; name one with --out"));
  if (options.background)
    return RecordInBackground(std::move(request), with_report);
  const int exit_code = RecordAndReport(request, with_report);
  if (stream.valid()) {
    const Status copied = CopyTrace(request, stream.get());
    return copied.ok() ? exit_code : Fail(copied);
  }

  struct stat status {};

  if (to_file && !options.quiet && exit_code == kExitOk &&
      fstat(request.trace.get(), &status) == 0)
    Print(stderr, "Wrote %lld bytes into %s\n", static_cast<long long>(status.st_size),
          request.trace_path.c_str());
  return exit_code;
}

CommandLine LineOf(CommandText text, bool to_file) {
  const auto options = std::make_shared<RecordOptions>();
  return {.text = std::move(text),
          .flags = ConfigFlags(*options, to_file),
          .run = [options, to_file]() -> Result<int> {
            if (options->config_path.empty())
              return Invalid(
                  "cannot record: no configuration is named; use -c FILE, and "
                  "heap_profile --print-config to make one");
            return Record(*options, to_file);
          }};
}

}  // namespace

CommandLine RecordConfigLine() {
  return LineOf({.name = "heap_profile record",
                 .summary = "Records what a trace configuration asks for.",
                 .usage = "heap_profile record -c FILE [-o DIRECTORY]"},
                /*to_file=*/false);
}

// As Perfetto's client: the output is one trace file.
CommandLine PerfettoCommandLine() {
  return LineOf({.name = "perfetto",
                 .summary = "Records what a trace configuration asks for.",
                 .usage = "perfetto -c FILE [--txt] -o FILE"},
                /*to_file=*/true);
}

}  // namespace heapprofd
