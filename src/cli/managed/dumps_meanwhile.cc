#include "cli/managed/dumps_meanwhile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/print.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/hprof/opened/opened_dump.h"
#include "cli/managed/append_graph.h"
#include "hotspot/java_process.h"
#include "trace/service_packets.h"

namespace heapprofd {
namespace {

// Of a dump, which may hold anything: whatever becomes of it.
struct NamelessFromHere {
  FilePlace place;

  ~NamelessFromHere() { unlink(place.at.c_str()); }
};

bool HasEnded(const ScopedFd& handle) {
  pollfd end = {.fd = handle.get(), .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) > 0;
}

// What heap_profile java advises has no meaning in a recording.
std::string ForRecordings(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kAdvice = {
      {{"wait longer with --timeout",
        "ask it alone by heap_profile java, which has --timeout"},
       {"give it a file where there is room for it with --keep",
        "name a directory where there is room for it with --output"}}};
  for (const auto& [theirs, ours] : kAdvice) {
    if (const size_t at = text.find(theirs); at != std::string::npos)
      text.replace(at, theirs.size(), ours);
  }
  return text;
}

}  // namespace

DumpsMeanwhile::DumpsMeanwhile(const std::vector<pid_t>& pids,
                               const OutputDirectory& directory,
                               Limits limits)
    : directory_(directory), limits_(limits) {
  for (const pid_t pid : pids)
    Add(pid);
}

DumpsMeanwhile::~DumpsMeanwhile() {
  if (!running_)
    return;
  running_.reset();
  unlink(directory_.Place(current_.name).at.c_str());
}

void DumpsMeanwhile::set_program(pid_t pid) {
  processes_.clear();
  Add(pid);
}

void DumpsMeanwhile::Add(pid_t pid) {
  ScopedFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const int error = handle.valid() ? 0 : errno;
  processes_.push_back({.pid = pid, .handle = std::move(handle), .error = error});
}

// Native dumps that came together, such as marks in a row, are one request and those
// behind it were for the same moment.
void DumpsMeanwhile::Request() {
  if (begun_ == limits_.most) {
    left_out_.NoteBeyond();
    return;
  }
  if (is_ending_) {
    left_out_.NoteEnding();
    return;
  }
  if (running_ || !due_.empty()) {
    left_out_.NoteBusy();
    return;
  }
  has_begun_ = false;
  for (size_t i = 0; i < processes_.size(); ++i)
    due_.push_back(i);
}

void DumpsMeanwhile::BeginNoMore() {
  is_ending_ = true;
  if (!due_.empty())
    left_out_.NoteEnding();
  due_.clear();
}

std::string DumpsMeanwhile::Look(uint64_t native_dumps) {
  std::string text;
  if (running_ && running_->HasEnded())
    text = Take({});
  for (; seen_dumps_ < native_dumps; ++seen_dumps_)
    Request();
  while (!running_ && !due_.empty())
    text += BeginNext();
  return text;
}

// Whoever is no virtual machine, not yet or not any more, is not asked.
std::string DumpsMeanwhile::FindProcess(const Process& process) {
  const std::string name = "process " + std::to_string(process.pid);
  if (!process.handle.valid())
    return Status::FromErrno("cannot hold " + name, process.error).message();
  const Result<JavaProcess> found = OpenJavaProcess(process.pid);
  if (HasEnded(process.handle))  // what was found may be another one
    return name + " has ended";
  if (!found.ok())
    return found.status().message();
  current_.process = Printable(found.value().Description());
  return "";
}

std::string DumpsMeanwhile::BeginNext() {
  const Process& process = processes_[due_.front()];
  due_.pop_front();
  current_ = {.pid = process.pid};
  if (const std::string why = FindProcess(process); !why.empty()) {
    left_out_.NoteUnasked(why);
    return "";
  }
  if (!std::exchange(has_begun_, true))
    ++begun_;
  const std::string name = ".java_heap." + std::to_string(begun_) + "." +
                           std::to_string(process.pid) + ".hprof";
  sigset_t none;
  sigemptyset(&none);
  current_.ts = BootTimeNs();
  current_.name = name;
  Result<RunningCommand> started = RunningCommand::Start(
      {"/proc/self/exe", "java", "--pid", std::to_string(process.pid), "--all",
       "--no-view", "--keep", directory_.PathForPrograms(name)},
      none, {.with_errors = true, .ends_with_us = true});
  if (!started.ok()) {
    has_failed_ = true;
    return "heap_profile: " + Printable(started.status().message()) + "\n";
  }
  running_.emplace(std::move(started).value());
  return "";
}

// What it says is ours to say, but for where the dump is: nowhere soon.
std::string DumpsMeanwhile::Take(const Impatience& impatience) {
  const Result<CommandResult> result = running_->Await(impatience);
  running_.reset();
  const NamelessFromHere nameless{directory_.Place(current_.name)};
  std::string said = result.ok() ? directory_.Told(result.value().output) : "";
  if (result.ok() && result.value().exit_code == kExitOk) {
    current_.file = ScopedFd(open(nameless.place.at.c_str(), O_RDONLY | O_CLOEXEC));
    const int error = errno;
    if (current_.file.valid()) {
      taken_.push_back(std::move(current_));
      if (limits_.quiet)
        return "";
      const size_t place = said.find(", which are in ");
      if (place != std::string::npos)
        said.erase(place, said.find('\n', place) - place);
      return said + "\n";
    }
    said = "heap_profile: " +
           Status::FromErrno("cannot open " + nameless.place.path, error).message();
  }
  has_failed_ = true;
  if (!result.ok() && result.status().code() == StatusCode::kTryAgain)
    return "heap_profile: a dump of the Java heap of " + current_.process +
           " is left out: it was ended by the interrupt\n";
  if (!result.ok())
    said = "heap_profile: " + result.status().message();
  return said.empty() ? "heap_profile: a dump of the Java heap of " + current_.process +
                            " is missing: the process that took it has ended\n"
                      : ForRecordings(said) + "\n";
}

std::string DumpsMeanwhile::End(int stop_fd) {
  std::string text;
  if (running_)
    text = Take({.fd = stop_fd, .is_over = [stop_fd] {
                   pollfd request = {.fd = stop_fd, .events = POLLIN, .revents = 0};
                   return poll(&request, 1, 0) > 0;
                 }});
  BeginNoMore();
  return limits_.quiet ? text : text + left_out_.Text(limits_.most);
}

bool DumpsMeanwhile::AddTo(const FilePlace& trace) {
  for (Dump& dump : taken_) {
    const auto add = [&]() -> Status {
      HPD_TRY_ASSIGN(hprof::MappedInput input,
                     hprof::MappedInput::Map(std::move(dump.file), dump.process));
      HPD_TRY_ASSIGN(OpenedDump opened, OpenDump(std::move(input), dump.process, 0));
      return AppendGraph(&opened, {.pid = dump.pid, .ts = dump.ts}, trace).status();
    };
    if (const Status status = add(); !status.ok()) {
      Fail(status);
      has_failed_ = true;
    }
  }
  return !has_failed_;
}

}  // namespace heapprofd
