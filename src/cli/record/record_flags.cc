#include "cli/record/record_flags.h"

#include <optional>

#include "cli/flag_values.h"

namespace heapprofd {
namespace {

// "NAME" or "NAME=BYTES", separated by commas.
ApplyValue HeapList(HeapSelection* target) {
  return [target](const std::string& text) {
    const std::vector<std::string> parts = SplitList(text);
    if (parts.empty())
      return Invalid("cannot use --heaps: it needs at least one name");
    for (const std::string& part : parts) {
      const size_t equals = part.rfind('=');
      HeapSelection::Heap heap{.name = part.substr(0, equals)};
      if (equals != std::string::npos) {
        const std::optional<uint64_t> interval = ParseSize(part.substr(equals + 1));
        if (!interval || *interval < 1 || *interval > uint64_t{1} << 40)
          return Invalid(
              "cannot use --heaps " + text + ": the interval of " + heap.name +
              " must be a number of bytes from 1 to 1 TiB; for example --heaps " +
              heap.name + "=4096");
        heap.interval_bytes = *interval;
      }
      target->heaps.push_back(std::move(heap));
    }
    return CheckHeapSelection(*target);
  };
}

std::vector<Flag> TargetFlags(Options& options) {
  const std::string group = "what to profile";
  TargetRules& targets = options.session.targets;
  return {
      {.letter = 'n',
       .name = "name",
       .value_name = "NAMES",
       .help = "Comma-separated names of processes to profile.",
       .details =
           "A name is compared with the program's file name and argv[0]; * stands "
           "for anything, and a pattern that begins with / is compared with all of "
           "argv[0]. Programs that start meanwhile are found by the file that is "
           "executed, or a link to it in PATH; python3 x.py is python3.",
       .group = group,
       .apply = ListValue("--name", &targets.names)},
      {.letter = 'p',
       .name = "pid",
       .value_name = "PIDS",
       .help = "Comma-separated process ids to profile.",
       .group = group,
       .apply = PidList("--pid", &targets.pids)},
      {.name = "no-running",
       .help = "Leave out processes that already run.",
       .group = group,
       .apply = Switch(&targets.no_running),
       .is_rare = true},
      {.name = "no-startup",
       .help = "Leave out processes that start during the profile.",
       .group = group,
       .apply = Switch(&targets.no_startup),
       .is_rare = true},
      {.name = "no-children",
       .help = "Do not profile the processes that PROGRAM starts.",
       .group = group,
       .apply = Switch(&options.session.follow_children, false)},
      {.name = "heaps",
       .value_name = "NAMES",
       .help = "Heaps to record, by name. Default libc.malloc.",
       .details = "Names are separated by commas; NAME=BYTES gives a heap a sampling "
                  "interval of its own.",
       .group = group,
       .apply = HeapList(&options.session.heaps)},
      {.name = "all-heaps",
       .help = "Record every heap that a program registers.",
       .details = "By way of heapprofd/heap_profile.h.",
       .group = group,
       .apply = Switch(&options.session.heaps.all)},
      {.name = "exclude-heaps",
       .value_name = "NAMES",
       .help = "With --all-heaps: not these.",
       .group = group,
       .apply = ListValue("--exclude-heaps", &options.session.heaps.excluded),
       .is_rare = true},
  };
}

ApplyValue FullMode(Options& options, WhenFull mode, bool* was_given) {
  return [&options, mode, was_given](const std::string&) {
    options.session.when_full = mode;
    *was_given = true;
    return Status();
  };
}

std::vector<Flag> SamplingFlags(Options& options) {
  const std::string group = "how";
  SessionConfig& session = options.session;
  return {
      {.letter = 'i',
       .name = "interval",
       .value_name = "BYTES",
       .help = "Sampling interval. Default 4096; 1: record all.",
       .details = "One sample is taken per BYTES allocated on average; allocations of at "
                  "least BYTES are always recorded. Units: 4K and 4KiB are 4096, 4KB "
                  "is 4000.",
       .group = group,
       .apply = SizeValue("--interval", &session.interval_bytes,
                          "a number of bytes from 1 to 1 TiB")},
      {.letter = 'd',
       .name = "duration",
       .value_name = "MS",
       .help = "Stop after this time (ms). Default: 7 days.",
       .details =
           "A program that still runs then runs on unprofiled. 0: no limit, which is "
           "the default for PROGRAM. The recording ends before, when the program "
           "does, or with Ctrl-C.",
       .group = group,
       .apply = NumberValue("--duration", &options.duration_ms, UINT32_MAX,
                            "a number of milliseconds from 0 to 4294967295; 0 records "
                            "until stopped")},
      {.name = "block-client",
       .help = "When the buffer is full, let the program wait for space. The default.",
       .group = group,
       .apply = FullMode(options, WhenFull::kBlock, &options.given.block),
       .is_rare = true},
      {.name = "no-block-client",
       .help =
           "When the buffer is full, drop and count records, and double the interval.",
       .group = group,
       .apply = FullMode(options, WhenFull::kDrop, &options.given.no_block),
       .is_rare = true},
      {.name = "block-client-timeout",
       .value_name = "US",
       .help = "Never let one allocation wait longer than this (microseconds).",
       .details = "A record that found no space in that time is dropped and counted. "
                  "Default: as long as the profiler moves, at most 1 s of standstill.",
       .group = group,
       .apply = NumberValue(
           "--block-client-timeout", &session.block_timeout_us, UINT32_MAX,
           "a number of microseconds from 0 to 4294967295; 0 waits as long as the "
           "profiler moves"),
       .is_rare = true},
      {.name = "shmem-size",
       .value_name = "BYTES",
       .help = "Size of the buffer per process. Default 8MiB.",
       .details = "A power of two multiple of 4096, at least 8192.",
       .group = group,
       .apply = SizeValue("--shmem-size", &session.ring_size_bytes,
                          "a power of two from 8192 to 268435456 bytes"),
       .is_rare = true},
  };
}

std::vector<Flag> DumpingFlags(Options& options) {
  const std::string group = "dumps";
  SessionConfig& session = options.session;
  return {
      {.letter = 'c',
       .name = "continuous-dump",
       .value_name = "MS",
       .help = "Dump every MS milliseconds, too. Default 0: off.",
       .details = "There is always a dump at the end. SIGUSR1 and heap_profile mark NAME "
                  "add one at any moment.",
       .group = group,
       .apply = NumberValue("--continuous-dump", &session.dumps.interval_ms, UINT32_MAX,
                            "a number of milliseconds from 0 to 4294967295; 0 turns it "
                            "off")},
      {.name = "dump-at-max",
       .help = "Dump what was live when most was, too.",
       .details = "In the trace the samples then carry the maximum in Perfetto's fields; "
                  "the pprof files have the maximum beside the ordinary views.",
       .group = group,
       .apply = Switch(&session.dumps.at_max)},
      {.name = "malloc-info",
       .help = "Ask the allocator for its own accounting, too.",
       .details = "glibc and jemalloc. The summary then tells requested bytes, the "
                  "allocator's overhead and caches, fragmentation and the rest apart. "
                  "Processes that are attached to (--pid, --name) are not asked.",
       .group = group,
       .apply = Switch(&session.ask_allocator),
       .is_rare = true},
      {.name = "idle-allocations",
       .help = "Tell what of live memory nobody touches.",
       .details =
           "By the kernel's idle page tracking, as root: what of malloc's heap lies "
           "on pages that were not read or written since the dump before, or, "
           "without others than the last, for a while before it. Where the kernel "
           "or the rights do not allow it, the end says so.",
       .group = group,
       .apply = Switch(&session.idle_allocations),
       .is_rare = true},
      {.name = "with-java",
       .help = "Dump the Java heap, too, at the end.",
       .details = "Of HotSpot (JDK 17 or later), named by --pid or started as PROGRAM. "
                  "The trace has both heaps then, and the summary tells where the "
                  "resident memory is. PROGRAM must still run: it is asked when the "
                  "duration is over or at Ctrl-C, which does not reach it before.",
       .group = group,
       .apply = Switch(&options.with_java)},
      {.name = "java-dumps",
       .value_name = "N",
       .help = "Up to N Java dumps at -c and marks, too.",
       .details = "With --with-java. Each stops the virtual machine for as long as it "
                  "dumps, lies on the disk beside the trace until the end, and makes the "
                  "trace larger; all of a process's are in memory when it is read. One "
                  "that is asked for while another is taken is left out. Default 0.",
       .group = group,
       .apply = NumberValue("--java-dumps", &options.java_dumps, 1000,
                            "a number from 0 to 1000"),
       .is_rare = true},
  };
}

std::vector<Flag> OutputFlags(Options& options) {
  const std::string group = "output";
  return {
      {.letter = 'o',
       .name = "output",
       .value_name = "DIRECTORY",
       .help = "Write the profile here. Default: a fresh one.",
       .details = "It must be empty or not exist.",
       .group = group,
       .apply = TextValue("--output", &options.output_directory)},
      {.name = "top",
       .value_name = "N",
       .help = "Rows of the summary's table. Default 10.",
       .group = group,
       .apply = NumberValue("--top", &options.top, 1000, "a number from 0 to 1000"),
       .is_rare = true},
      {.letter = 'q',
       .name = "quiet",
       .help = "Print nothing but errors.",
       .group = group,
       .apply = Switch(&options.quiet)},
      {.name = "no-report",
       .help = "Do not make report.html beside the trace.",
       .details = "heap_profile report makes it later.",
       .group = group,
       .apply = Switch(&options.with_report, false)},
      {.name = "print-config",
       .help = "Print the trace configuration instead of recording.",
       .details = "heap_profile record -c - reads it.",
       .group = group,
       .apply = Switch(&options.print_config),
       .is_rare = true},
      {.name = "generate",
       .value_name = "WHAT",
       .help = "Print the completions for zsh or fish.",
       .group = group,
       .apply = TextValue("--generate", &options.generate),
       .is_rare = true},
  };
}

std::vector<Flag> CompatibilityFlags(Options& options) {
  const std::string group = "compatibility";
  return {
      {.name = "no-start",
       .help = "Use a running heapprofd only; do not stand in for it.",
       .group = group,
       .apply = Switch(&options.may_stand_in, false),
       .is_rare = true},
      {.name = "disable-fork-teardown",
       .help = "android: forked children do not end their parent's profile.",
       .details = "No effect on Linux: they never do.",
       .group = group,
       .apply = Switch(&options.session.device.disable_fork_teardown),
       .is_rare = true},
      {.name = "trace-to-text-binary",
       .aliases = {"traceconv-binary", "trace-processor-binary"},
       .value_name = "PATH",
       .help = "Converter for a device's traces. On Linux conversion is built in.",
       .group = group,
       .apply = TextValue("--trace-to-text-binary", &options.converter),
       .is_rare = true},
      {.name = "no-annotations",
       .help = "android: leave the kind of Java frames out of their names.",
       .group = group,
       .apply = Switch(&options.android.annotate, false),
       .is_rare = true},
      {.name = "disable-selinux",
       .help = "android: disable SELinux enforcement during the profile.",
       .group = group,
       .apply = Switch(&options.android.disable_selinux),
       .is_rare = true},
      {.name = "no-versions",
       .help = "android: leave out the versions of packages.",
       .group = group,
       .apply = Switch(&options.android.package_versions, false),
       .is_rare = true},
      {.name = "simpleperf",
       .help = "android: profile heapprofd itself with simpleperf.",
       .group = group,
       .apply = Switch(&options.android.simpleperf),
       .is_rare = true},
  };
}

}  // namespace

std::vector<Flag> RecordFlags(Options& options) {
  std::vector<Flag> all = TargetFlags(options);
  for (const std::vector<Flag>& group :
       {SamplingFlags(options), DumpingFlags(options), OutputFlags(options),
        CompatibilityFlags(options)})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace heapprofd
