// heap_profile java: a heap dump of a running virtual machine, and what hprof's views say
// about it, in one command.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/child_process.h"
#include "base/files/guarded_read.h"
#include "base/files/proc_files.h"
#include "base/format.h"
#include "base/print.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/hprof/device_heap.h"
#include "cli/hprof/hprof_report.h"
#include "cli/kept_dump.h"
#include "cli/memory_budget.h"
#include "cli/record/signals.h"
#include "cli/record/status_line.h"
#include "hotspot/heap_dump.h"
#include "hotspot/vm_flags.h"

namespace heapprofd {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kTimeoutS = 300;
constexpr uint64_t kListenTimeoutS = 10;  // as the JDK's own tools
constexpr uint64_t kMaxTimeoutS = uint64_t{7} * 24 * 3600;

struct JavaOptions {
  std::vector<pid_t> pids;
  std::string name;
  std::string keep;
  std::string oom_path;
  std::string pull;
  bool on_device = false;
  std::optional<uint64_t> timeout_s;
  bool with_garbage = false;
  bool no_view = false;
  bool arm_oom = false;
  bool disarm_oom = false;
  HprofView view;
  std::vector<std::string> words;
};

CommandText JavaCommand() {
  return {
      .name = "heap_profile java",
      .summary =
          "Shows the heap of a running Java virtual machine (HotSpot, JDK 17 or later).",
      .usage = "heap_profile java\n" + ViewUsage("heap_profile java -p PID|-n NAME", "") +
               "\nheap_profile java -p PID|-n NAME --arm-oom|--disarm-oom"
               "\nheap_profile java android -p PID|-n NAME|--pull PATH [VIEW]",
      .words_title = "views",
      .words = ViewWords(),
      .epilogue =
          "Without -p and -n it lists the virtual machines that run; without a view "
          "it\nshows the histogram.\n"
          "\n"
          "The virtual machine stands still while it collects garbage and dumps: a\n"
          "few tenths of a second for each 100 MB of objects.\n"
          "\n"
          "With android it is one on a device behind adb: ART, or Dalvik of any age.\n"
          "ANDROID_SERIAL chooses among several devices.\n"};
}

std::vector<Flag> DumpFlags(JavaOptions* options) {
  return {
      {.letter = 'p',
       .name = "pid",
       .value_name = "PID",
       .help = "The process with the virtual machine.",
       .group = "which",
       .apply = PidList("--pid", &options->pids)},
      {.letter = 'n',
       .name = "name",
       .value_name = "NAME",
       .help = "The one of this name, or with this argument.",
       .group = "which",
       .apply = TextValue("--name", &options->name)},
      {.name = "all",
       .help = "Garbage, too: nothing is collected before.",
       .group = "the dump",
       .apply = Switch(&options->with_garbage)},
      {.name = "keep",
       .value_name = "FILE",
       .help = "Also leave the dump in FILE, a new one.",
       .details = "Without it the dump lies in our memory, in at most half of what is "
                  "available. Since JDK 22 the virtual machine collects it in its "
                  "own /tmp first: it is asked only when there is room.",
       .group = "the dump",
       .apply = TextValue("--keep", &options->keep)},
      {.name = "no-view",
       .help = "With --keep: show nothing of it.",
       .group = "the dump",
       .apply = Switch(&options->no_view),
       .is_rare = true},
      {.name = "pull",
       .value_name = "PATH",
       .help = "android: a dump that is there already.",
       .group = "the dump",
       .apply = TextValue("--pull", &options->pull),
       .is_rare = true},
      {.name = "timeout",
       .value_name = "SECONDS",
       .help = "Give up when nothing has come for so long.",
       .details = "300 when not said, and 10 until it listens.",
       .group = "the dump",
       .apply = NumberValue("--timeout", &options->timeout_s, kMaxTimeoutS,
                            "a number of seconds up to a week"),
       .is_rare = true}};
}

std::vector<Flag> OutOfMemoryFlags(JavaOptions* options) {
  return {{.name = "arm-oom",
           .help = "Have it leave a dump when it runs out of memory.",
           .group = "out of memory",
           .apply = Switch(&options->arm_oom)},
          {.name = "oom-path",
           .value_name = "PATH",
           .help = "With --arm-oom: where to, as it sees it.",
           .group = "out of memory",
           .apply = TextValue("--oom-path", &options->oom_path),
           .is_rare = true},
          {.name = "disarm-oom",
           .help = "Have it leave none, not even if started to do so.",
           .group = "out of memory",
           .apply = Switch(&options->disarm_oom),
           .is_rare = true}};
}

std::vector<Flag> JavaFlags(JavaOptions* options) {
  std::vector<Flag> flags = DumpFlags(options);
  for (std::vector<Flag> others :
       {OutOfMemoryFlags(options), DumpViewFlags("what is shown", &options->view)})
    flags.insert(flags.end(), others.begin(), others.end());
  return flags;
}

// Nothing that was asked for is silently without effect.
Status CheckHaveEffect(const JavaOptions& options, bool is_about_flags) {
  const HprofView usual;
  const bool is_of_dump = options.with_garbage || options.view.json ||
                          options.view.retained || options.view.top != usual.top ||
                          options.view.memory_budget != usual.memory_budget;
  if (is_about_flags && is_of_dump)
    return Invalid(
        "cannot use --all, --json, --memory-budget, --retained or --top with --arm-oom "
        "or --disarm-oom: these only set flags");
  if (options.pids.empty() && options.name.empty() && (is_of_dump || options.timeout_s))
    return Invalid(
        "cannot use --all, --json, --memory-budget, --retained, --timeout or --top: "
        "neither -p nor -n is given, without which virtual machines are listed");
  return {};
}

Status CheckOnDevice(const JavaOptions& options) {
  if (options.arm_oom || options.disarm_oom || !options.oom_path.empty())
    return Invalid(
        "cannot use --arm-oom, --disarm-oom or --oom-path with android: they are for "
        "HotSpot");
  const size_t named = options.pids.size() + (options.name.empty() ? 0 : 1) +
                       (options.pull.empty() ? 0 : 1);
  if (named != 1)
    return Invalid(
        "cannot choose a heap on the device: name one process by -p or -n, or one dump "
        "by --pull");
  if (options.with_garbage && !options.pull.empty())
    return Invalid("cannot use --all with --pull: that dump has been taken already");
  return {};
}

Status CheckTogether(const JavaOptions& options) {
  if (options.no_view &&
      (options.keep.empty() || !options.words.empty() || options.on_device))
    return Invalid(
        "cannot use --no-view: it only makes sense with --keep, without a view, and not "
        "with android");
  if (options.on_device)
    return CheckOnDevice(options);
  if (!options.pull.empty())
    return Invalid(
        "cannot use --pull: it only makes sense with heap_profile java android");
  const bool is_about_flags = options.arm_oom || options.disarm_oom;
  if (options.arm_oom && options.disarm_oom)
    return Invalid("cannot use --arm-oom together with --disarm-oom");
  if (!options.oom_path.empty() && !options.arm_oom)
    return Invalid("cannot use --oom-path: it only makes sense with --arm-oom");
  if (options.pids.size() > 1 || (!options.pids.empty() && !options.name.empty()))
    return Invalid("cannot ask several virtual machines: name one of them by -p or -n");
  if (is_about_flags && !(options.words.empty() && options.keep.empty()))
    return Invalid(
        "cannot take a dump with --arm-oom or --disarm-oom: these only set flags");
  HPD_TRY(CheckHaveEffect(options, is_about_flags));
  if (options.pids.empty() && options.name.empty() &&
      (is_about_flags || !options.words.empty() || !options.keep.empty()))
    return Invalid(
        "cannot ask a virtual machine: neither -p nor -n is given; heap_profile java "
        "lists those that run");
  return {};
}

Status ReadView(JavaOptions* options) {
  std::vector<std::string> words = options->words;
  if (words.empty())
    return {};
  if (!IsView(words[0])) {
    Words views;
    for (const CommandWord& view : ViewWords())
      views.push_back(view.name);
    return Invalid("cannot show " + words[0] + ": there is no such view; " +
                   DidYouMean(words[0], views, "heap_profile java --help lists them"));
  }
  options->view.verb = words[0];
  words.erase(words.begin());
  return SetObject(words, &options->view);
}

// Those that could not be looked into, for messages; empty: there are none.
std::string UnknownText(const FoundMachines& found) {
  std::string text;
  if (found.of_others > 0)
    text += std::to_string(found.of_others) +
            " that may be one cannot be looked into by "
            "this user (root can)";
  if (found.late > 0)
    text += (text.empty() ? "" : ", ") + std::to_string(found.late) +
            " that may be one did not show in time what they are";
  return text;
}

// When one could not be looked into, another one might be meant.
Result<JavaProcess> FindProcess(const JavaOptions& options) {
  if (!options.pids.empty())
    return OpenJavaProcess(options.pids[0]);
  const FoundMachines found = FindJavaProcesses(options.name);
  const std::vector<pid_t>& pids = found.pids;
  const std::string unknown = UnknownText(found);
  if (pids.size() == 1 && found.late == 0)
    return OpenJavaProcess(pids[0]);
  if (pids.empty())
    return Status(StatusCode::kNotFound,
                  "cannot find a virtual machine named " + options.name +
                      (unknown.empty() ? "" : ": of the processes, " + unknown) +
                      "; heap_profile java lists those that run");
  std::string list;
  for (const pid_t pid : pids)
    list += (list.empty() ? "" : ", ") + std::to_string(pid);
  return Invalid("cannot choose a virtual machine named " + options.name + ": there " +
                 (pids.size() == 1 ? "is " : "are ") + list +
                 (unknown.empty() ? "" : ", and " + unknown) + "; name one by -p");
}

void ListMachines() {
  Print(stdout, "%8s %8s  %s\n", "pid", "user", "command");
  const FoundMachines found = FindJavaProcesses("");
  for (const pid_t pid : found.pids) {
    constexpr size_t kShown = 120;
    std::string command = ReadMemoryFile(pid, "cmdline", kShown).text;
    std::replace(command.begin(), command.end(), '\0', ' ');
    Print(stdout, "%8d %8u  %s\n", pid, RealUser(pid).value_or(kNobody), command.c_str());
  }
  if (const std::string unknown = UnknownText(found); !unknown.empty())
    Print(stderr, "Perhaps there are more: of the processes, %s.\n", unknown.c_str());
}

MachinePatience PatienceOf(const JavaOptions& options) {
  return {options.timeout_s.value_or(kListenTimeoutS) * kNsPerSecond,
          options.timeout_s.value_or(kTimeoutS) * kNsPerSecond,
          "wait longer with --timeout"};
}

Status ArmOom(const JavaProcess& process, const JavaOptions& options) {
  if (options.disarm_oom) {
    HPD_TRY(DisarmOutOfMemoryDump(process, PatienceOf(options)));
    Print(stderr, "%s leaves no dump any more when it runs out of memory\n",
          process.Description().c_str());
    return {};
  }
  HPD_TRY_ASSIGN(const ArmedDump armed,
                 ArmOutOfMemoryDump(process, options.oom_path, PatienceOf(options)));
  Print(stderr, "%s %s a dump when it runs out of memory: %s; --disarm-oom ends that\n",
        process.Description().c_str(),
        armed.was_armed ? "leaves, as it would have before," : "leaves",
        armed.path.empty() ? ("java_pid" + std::to_string(process.inner_pid) +
                              ".hprof in its working directory")
                                 .c_str()
                           : armed.path.c_str());
  return {};
}

// A signal ends the dump and not us until it is there and has its name: what was begun is
// cleaned up.
Result<TakenDump> TakeDump(const JavaProcess& process,
                           const JavaOptions& options,
                           KeptDump* kept,
                           ScopedFd* file) {
  const SteeringSignals signals(SignalSource::kTerminal);
  const ScopedFd stop = StopRequests();
  StatusLine line(/*is_wanted=*/true);
  Result<TakenDump> taken = TakeHeapDump(
      process,
      {.with_garbage = options.with_garbage,
       .patience = PatienceOf(options),
       .room_advice = "give it a file where there is room for it with --keep",
       .show = [&line](const std::string& text) { line.Show(text); },
       .stop_fd = stop.get()},
      kept->fd(), kept->room());
  line.Clear();
  if (!taken.ok())
    return taken;
  HPD_TRY_ASSIGN(*file, kept->Keep());
  sigprocmask(SIG_SETMASK, &signals.original_mask(), nullptr);
  return taken;
}

Status ShowHeap(const JavaProcess& process, const JavaOptions& options) {
  // What cannot be answered anyway must not stop a virtual machine.
  HPD_TRY(UseMemoryBudget(options.view.memory_budget));
  HPD_TRY_ASSIGN(std::optional<OpenedDump> older, OpenOlder(options.view));
  VolunteerToBeEnded();
  HPD_TRY_ASSIGN(KeptDump kept, KeptDump::Create(options.keep));
  ScopedFd file;
  HPD_TRY_ASSIGN(const TakenDump taken, TakeDump(process, options, &kept, &file));
  Print(stderr, "%s took %s to dump %s%s%s\n", process.Description().c_str(),
        FormatDuration(taken.seconds).c_str(),
        FormatBytes(static_cast<double>(taken.bytes)).c_str(),
        options.keep.empty() ? "" : ", which are in ", options.keep.c_str());
  if (!taken.left.empty())
    Print(stderr, "%s: %s; remove it\n", process.Description().c_str(),
          taken.left.c_str());
  if (options.no_view)
    return {};
  HPD_TRY_ASSIGN(hprof::MappedInput input,
                 hprof::MappedInput::Map(std::move(file), process.Description()));
  HPD_TRY_ASSIGN(OpenedDump dump, OpenDump(std::move(input), process.Description(), 0));
  return PrintView(dump, std::move(older), options.view);
}

DeviceDumpRequest DeviceRequest(const JavaOptions& options) {
  return {
      .process = options.pids.empty() ? options.name : std::to_string(options.pids[0]),
      .existing = options.pull,
      .with_garbage = options.with_garbage,
      .patience_ns = PatienceOf(options).without_progress_ns};
}

Status RunJava(JavaOptions& options) {
  if (!options.words.empty() && options.words[0] == "android") {
    options.on_device = true;
    options.words.erase(options.words.begin());
  }
  HPD_TRY(CheckTogether(options));
  HPD_TRY(ReadView(&options));
  if (options.on_device) {
    HPD_TRY(UseMemoryBudget(options.view.memory_budget));
    return ShowDeviceHeap(DeviceRequest(options), options.keep, options.view);
  }
  if (options.pids.empty() && options.name.empty()) {
    ListMachines();
    return {};
  }
  HPD_TRY_ASSIGN(const JavaProcess process, FindProcess(options));
  return options.arm_oom || options.disarm_oom ? ArmOom(process, options)
                                               : ShowHeap(process, options);
}

}  // namespace

CommandLine JavaLine() {
  const auto options = std::make_shared<JavaOptions>();
  return {.text = JavaCommand(),
          .flags = JavaFlags(options.get()),
          .take_word = TakeWords(&options->words),
          .run = [options]() -> Result<int> {
            HPD_TRY(RunJava(*options));
            return static_cast<int>(kExitOk);
          }};
}

}  // namespace heapprofd
