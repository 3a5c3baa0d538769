#include "cli/record/android.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "cli/device/device_trace.h"
#include "cli/exit_code.h"
#include "cli/record/device_files.h"
#include "cli/record/output_directory.h"
#include "cli/report_command.h"

namespace heapprofd {
namespace {

class AndroidRun {
 public:
  explicit AndroidRun(const Options& options)
      : options_(options),
        trace_(options.quiet ? ""
                             : "Profiling active. Press Ctrl+C to terminate.\n"
                               "You may disconnect your device.",
               "killall -USR1 heapprofd") {}

  // Leaves raw-trace in `directory`.
  Status Record(const OutputDirectory& directory) {
    HPD_TRY(trace_.Explained(trace_.Reach()));
    HPD_TRY(trace_.Explained(DisableSelinux()));
    Status status = trace_.Explained(RecordAndPull(directory));
    HPD_TRY(trace_.Explained(RestoreSelinux()));
    return status;
  }

 private:
  Status DisableSelinux() {
    if (!options_.android.disable_selinux)
      return {};
    HPD_TRY_ASSIGN(selinux_, trace_.adb().Shell("getenforce"));
    return trace_.adb().Tell("su root setenforce 0");
  }

  Status RestoreSelinux() {
    if (selinux_ != "Enforcing")
      return {};
    trace_.ForgetStops();
    return trace_.adb().Tell("su root setenforce 1");
  }

  Status RecordAndPull(const OutputDirectory& directory) {
    HPD_TRY(
        trace_.Start(DeviceConfigText(options_), "profile-" + std::to_string(getpid())));
    HPD_TRY(StartSimpleperf());
    HPD_TRY(trace_.AwaitEnd());
    HPD_TRY(trace_.Pull(directory.PathForPrograms("raw-trace")));
    trace_.RemoveThere();
    return PullSimpleperf(directory);
  }

  Status StartSimpleperf() {
    if (!options_.android.simpleperf)
      return {};
    return trace_.adb().Tell(
        "mkdir -p /data/local/tmp/heapprofd_profile && cd "
        "/data/local/tmp/heapprofd_profile && (nohup simpleperf record "
        "-g -p $(pidof heapprofd) 2>&1 &) > /dev/null");
  }

  Status PullSimpleperf(const OutputDirectory& directory) {
    if (!options_.android.simpleperf)
      return {};
    HPD_TRY(
        trace_.adb().Tell("killall -INT simpleperf; while pidof simpleperf; do sleep 1; "
                          "done > /dev/null"));
    HPD_TRY_ASSIGN([[maybe_unused]] const std::string pulled,
                   trace_.adb().Output({"pull", "/data/local/tmp/heapprofd_profile",
                                        directory.PathForPrograms("")}));
    return {};
  }

  const Options& options_;
  DeviceTrace trace_;
  std::string selinux_;
};

}  // namespace

std::string DeviceConfigText(const Options& options) {
  std::string text = PrintTraceConfig(ConfigOf(options));
  if (options.android.package_versions)
    text += "data_sources {\n  config {\n    name: \"android.packages_list\"\n  }\n}\n";
  return text;
}

int RunOnAndroid(const Options& options) {
  umask(077);  // adb's files are for their owner, too
  Result<OutputDirectory> created = OutputDirectory::Create(options.output_directory);
  if (!created.ok())
    return Fail(created.status());
  const OutputDirectory& directory = created.value();
  const Status status = AndroidRun(options).Record(directory);
  if (!status.ok()) {
    directory.RemoveIfEmpty();
    return Fail(Status(status.code(), directory.Told(status.message())));
  }
  const int exit_code = ConvertDeviceTrace({.directory = directory,
                                            .converter = options.converter,
                                            .annotate = options.android.annotate,
                                            .quiet = options.quiet});
  if (!options.with_report)
    return exit_code;
  const int report =
      MakeReportBeside(directory.Place("raw-trace"), exit_code == kExitOk, options.quiet);
  return exit_code == kExitOk ? report : exit_code;
}

}  // namespace heapprofd
