// `heap_profile doctor`: what can be recorded here and why not, with what to do about it.
#include <linux/capability.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "attach/allocators.h"
#include "attach/apart.h"
#include "attach/client_image.h"
#include "attach/gate/exec_gate.h"
#include "attach/gate/gate_link.h"
#include "attach/leftovers.h"
#include "attach/patch_plan.h"
#include "attach/remote_process.h"
#include "attach/thread/seccomp_filters.h"
#include "base/files/own_rights.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/record/launch.h"

namespace heapprofd {
namespace {

class Findings {
 public:
  void Good(const std::string& text) { text_ += "  ok    " + Printable(text) + "\n"; }

  void Bad(const std::string& text, const std::string& remedy) {
    text_ += "  no    " + Printable(text) + "\n        " + Printable(remedy) + "\n";
    ++problems_;
  }

  void Note(const std::string& text) { text_ += "  note  " + Printable(text) + "\n"; }

  void Show() const { PrintLines(stdout, text_); }

  int problems() const { return problems_; }

 private:
  std::string text_;
  int problems_ = 0;
};

std::string StatusText(pid_t pid) {
  return ReadProcFile(ProcPath(pid, "status"), 16384);
}

void CheckPreload(Findings* findings) {
  const Result<std::string> library = FindPreloadLibrary();
  if (library.ok())
    findings->Good("start and record a program: heap_profile -- PROGRAM");
  else
    findings->Bad("start and record a program", library.status().message());
}

void CheckAttach(Findings* findings) {
  const std::string yama = ReadProcFile("/proc/sys/kernel/yama/ptrace_scope", 16);
  const int scope = yama.empty() ? 0 : atoi(yama.c_str());  // NOLINT(cert-err34-c)
  if (scope == 3)
    findings->Bad("attach to a process: ptrace is switched off (yama/ptrace_scope is 3)",
                  "it can only be switched on again by a restart of the machine");
  else if (HasCapability(CAP_SYS_PTRACE))
    findings->Good("attach to processes of all users: heap_profile -p PID");
  else if (scope != 0)
    findings->Bad("attach to processes: yama/ptrace_scope is " + std::to_string(scope),
                  "run as root, or write 0 to /proc/sys/kernel/yama/ptrace_scope");
  else
    findings->Good("attach to your own processes: heap_profile -p PID (all: as root)");
}

void CheckWatch(Findings* findings) {
  ExecGate gate;
  Result<GateEnds> ends = gate.AddWatcher();
  std::string note;
  const Status watcher = ends.ok()
                             ? GateLink(std::move(ends).value()).Begin(ExecNames(), &note)
                             : ends.status();
  if (watcher.ok())
    findings->Good("catch new processes by name: heap_profile -n NAME");
  else
    findings->Bad("catch new processes by name", watcher.message());
}

void CheckTracer(pid_t pid, Findings* findings) {
  const std::string tracer = StatusField(StatusText(pid), "TracerPid");
  if (!tracer.empty() && tracer != "0")
    findings->Bad(
        "process " + tracer + " (" +
            CommandName(static_cast<pid_t>(strtol(tracer.c_str(), nullptr, 10))) +
            ") traces it",
        "end that first");
  if (!IsUnderSeccomp(pid))
    return;
  const std::string obstacle = ObstacleToSuspendingFilters();
  if (obstacle.empty())
    findings->Note("it runs under a seccomp filter, which is suspended for a moment");
  else
    findings->Bad("suspend its seccomp filter", obstacle);
}

void CheckAllocators(const RemoteProcess& process, Findings* findings) {
  AllocatorFinder finder;
  const std::vector<MapEntry> maps = process.Maps();
  const ProcessCode code = finder.Find(process, maps);
  for (const Allocator& allocator : code.allocators)
    findings->Good("allocator in " + allocator.path + ": " +
                   std::to_string(allocator.functions.size()) + " functions");
  if (code.allocators.empty())
    findings->Bad("no allocator that can be hooked", NoAllocatorReason(code));
  if (code.is_go)
    findings->Note(
        "it is a Go program: only what its C code allocates is seen; use Go's pprof for "
        "the rest");
  for (const std::string& path : code.unopened)
    findings->Bad("not known: what " + path + " defines",
                  "it could not be opened in time; look at its file system");
  const bool is_recorded = IsRecordedAlready(process, maps);
  if (is_recorded)
    findings->Bad("attach to it: it is recorded", kRecordedAlready);
  const size_t images = FindImages(process, maps).size();
  if (images == 0 && !is_recorded) {
    for (const std::string& unhookable : FindUnhookable(process, maps, code))
      findings->Bad("no hook for " + unhookable,
                    "start it under heap_profile -- PROGRAM");
  }
  if (images > 0 && !is_recorded)
    findings->Note("it has been attached to before; that memory is used again");
}

void CheckProcess(pid_t pid, Findings* findings) {
  const Result<RemoteProcess> process = RemoteProcess::Open(pid);
  if (!process.ok()) {
    findings->Bad("open it", process.status().message());
    return;
  }
  CheckTracer(pid, findings);
  CheckAllocators(process.value(), findings);
}

// What the kernel shows of a process it may show when the process's user likes. Problems.
int ShowProcess(pid_t pid) {
  Print(stdout, "process %d\n", pid);
  const auto found = std::make_shared<Findings>();
  if (RunApart(
          pid, [pid, found] { CheckProcess(pid, found.get()); }, [] {})) {
    found->Show();
    return found->problems();
  }
  Findings late;
  late.Bad("look into it: the kernel does not show all of it in time",
           "it may hang on a file system; try again later");
  late.Show();
  return late.problems();
}

int RunDoctor(const std::vector<pid_t>& pids) {
  Findings findings;
  Print(stdout, "this machine\n");
  CheckPreload(&findings);
  CheckAttach(&findings);
  CheckWatch(&findings);
  findings.Show();
  int problems = findings.problems();
  for (const pid_t pid : pids)
    problems += ShowProcess(pid);
  return problems == 0 ? kExitOk : kExitFailure;
}

}  // namespace

CommandLine DoctorLine() {
  const auto pids = std::make_shared<std::vector<pid_t>>();
  return {.text = {.name = "heap_profile doctor",
                   .summary =
                       "Tells what can be recorded here, and what to do about the rest.",
                   .usage = "heap_profile doctor [-p PIDS]",
                   .epilogue = "The exit code is 0 when all is possible.\n"},
          .flags = {{.letter = 'p',
                     .name = "pid",
                     .value_name = "PIDS",
                     .help = "Look at these processes, too: comma-separated ids.",
                     .group = "options",
                     .apply = PidList("--pid", pids.get())}},
          .take_word =
              [](const std::string& word) {
                return Invalid("cannot understand \"" + word +
                               "\": doctor takes processes as -p PIDS");
              },
          .run = [pids]() -> Result<int> { return RunDoctor(*pids); }};
}

}  // namespace heapprofd
