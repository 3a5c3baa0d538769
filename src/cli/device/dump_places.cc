#include "cli/device/dump_places.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/random_seed.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr char kToStandardOutput[] = " 2>&1";
constexpr size_t kMaxAnswer = 300;
// Of the SDK, Android 4.2: am dumpheap takes no notice of options before.
constexpr int kFirstVersionThatKnowsOptions = 17;
constexpr char kSignalDirectory[] = "/data/misc";

Status Unavailable(const std::string& cause) {
  return Status(StatusCode::kUnavailable, cause);
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, std::min(text.find_first_of("\r\n"), kMaxAnswer));
}

// The line of what `am` says that tells of a failure; empty: none does. Before Android 7
// its exit code does not arrive.
std::string FailureIn(const CommandResult& result) {
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);)
    for (const char* const word : {"Exception", "Error", "FAILED", "not found"})
      if (line.find(word) != std::string::npos)
        return FirstLine(line);
  if (result.exit_code == 0)
    return "";
  return result.output.empty()
             ? "adb fails with exit code " + std::to_string(result.exit_code)
             : FirstLine(result.output);
}

// Where adb's own user may write.
std::string OwnPath() {
  return "/data/local/tmp/heap_profile-" + std::to_string(RandomSeed());
}

// By `command`; what is not there is removed. (Old devices have no rm -f.)
Status RemoveOwn(const Adb& adb, const std::string& command) {
  HPD_TRY_ASSIGN(const std::string said, adb.Shell(command + kToStandardOutput));
  const bool is_gone =
      said.empty() || said.find("No such file or directory") != std::string::npos;
  return is_gone ? Status() : Unavailable(FirstLine(said));
}

class OfActivityManager : public DumpPlace {
 public:
  OfActivityManager(std::string process, bool with_garbage, int sdk)
      : process_(std::move(process)),
        with_garbage_(with_garbage),
        sdk_(sdk),
        directory_(OwnPath()) {}

  // In a directory of its own: when that is removed, an `am` that comes late creates
  // nothing.
  Status Ask(const Adb& adb) override {
    may_be_there_ = true;  // also when adb is ended before it answers
    HPD_TRY_ASSIGN(const std::string made,
                   adb.Shell("umask 077 && mkdir " + directory_ + kToStandardOutput));
    may_be_there_ = made.empty();
    if (!may_be_there_)
      return Unavailable("the device creates no directory for it: " + FirstLine(made));
    if (!with_garbage_) {
      HPD_TRY_ASSIGN(const bool is_asked, DumpWithoutGarbage(adb));
      if (is_asked)
        return {};
      notes_.emplace_back(
          "am dumpheap of this device has no -g: garbage may be among the objects");
    }
    HPD_TRY_ASSIGN([[maybe_unused]] const bool is_asked, Dump(adb, ""));
    return {};
  }

  const std::string& directory() const override { return directory_; }

  bool IsPart(const std::string& name) const override { return name == kName; }

  Status Remove(const Adb& adb) override {
    return may_be_there_ ? RemoveOwn(adb, "rm -r " + directory_) : Status();
  }

 private:
  static constexpr char kName[] = "dump.hprof";

  // False: this device cannot.
  Result<bool> DumpWithoutGarbage(const Adb& adb) {
    if (sdk_ < kFirstVersionThatKnowsOptions)
      return false;
    return Dump(adb, "-g ");
  }

  // False: it does not know the option.
  Result<bool> Dump(const Adb& adb, const std::string& option) {
    HPD_TRY_ASSIGN(
        const CommandResult result,
        adb.Run({"shell", "am dumpheap " + option + ShellQuoted(process_) + " " +
                              directory_ + "/" + kName + kToStandardOutput}));
    const std::string failure = FailureIn(result);
    if (failure.empty())
      return true;
    if (!option.empty() && failure.find("Unknown option") != std::string::npos)
      return false;
    return Unavailable("am dumpheap answers \"" + failure +
                       "\"; it dumps programs that can be debugged, and all on userdebug "
                       "and eng builds");
  }

  std::string process_;
  bool with_garbage_;
  int sdk_;
  std::string directory_;
  bool may_be_there_ = false;
};

class OfSignal : public DumpPlace {
 public:
  explicit OfSignal(std::string process) : process_(std::move(process)) {}

  Status Ask(const Adb& adb) override {
    HPD_TRY(BecomeRoot(adb));
    HPD_TRY(FindPid(adb));
    HPD_TRY(CheckTakesSignal(adb));
    HPD_TRY_ASSIGN(before_, List(adb));
    is_asked_ = true;
    HPD_TRY_ASSIGN(const std::string said,
                   adb.Shell(root_ + "kill -10 " + pid_ + kToStandardOutput));
    if (said.empty())
      return {};
    is_asked_ = false;
    return Unavailable("kill answers \"" + FirstLine(said) + "\"");
  }

  const std::string& directory() const override { return directory_; }

  // heap-dump-tm1240861355-pid289.hprof, of 1.0 and 1.1 also ...hprof-head. Names become
  // words of a shell.
  bool IsPart(const std::string& name) const override {
    const std::string end = "-pid" + pid_ + ".hprof";
    const bool is_new =
        std::none_of(before_.begin(), before_.end(),
                     [&](const ListedFile& file) { return file.name == name; });
    return is_new && name.starts_with("heap-dump-") &&
           (name.ends_with(end) || name.ends_with(end + "-head")) &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") ==
               std::string::npos;
  }

  // Adb fetches as its own user: what root alone may read it gets as a copy.
  Result<std::string> PathToFetch(const Adb& adb, const std::string& name) override {
    const std::string path = directory_ + "/" + name;
    if (root_.empty())
      return path;
    may_have_copy_ = true;
    HPD_TRY_ASSIGN(const std::string said, adb.Shell("umask 077 && " + root_ + "cat " +
                                                     path + " 2>&1 >" + copy_));
    if (!said.empty())
      return Unavailable("the device does not copy " + path + ": " + FirstLine(said));
    return copy_;
  }

  Status Remove(const Adb& adb) override {
    Status removed = is_asked_ ? RemoveDumps(adb) : Status();
    if (may_have_copy_)
      HPD_TRY(RemoveOwn(adb, "rm " + copy_));
    return removed;
  }

 private:
  // Whoever is interrupted may be before the program that dumps.
  Status RemoveDumps(const Adb& adb) const {
    HPD_TRY_ASSIGN(const std::vector<ListedFile> files, List(adb));
    std::string names;
    for (const ListedFile& file : files)
      if (IsPart(file.name))
        names += " " + directory_ + "/" + file.name;
    if (names.empty())
      return Unavailable("none is there yet");
    HPD_TRY_ASSIGN(const std::string said,
                   adb.Shell(root_ + "rm" + names + kToStandardOutput));
    return said.empty() ? Status() : Unavailable(FirstLine(said));
  }

  Status BecomeRoot(const Adb& adb) {
    for (const char* const prefix : {"", "su root "}) {
      HPD_TRY_ASSIGN(const std::string who,
                     adb.Shell(std::string(prefix) + "id" + kToStandardOutput));
      root_ = prefix;
      if (who.starts_with("uid=0("))
        return {};
    }
    return Unavailable(
        "before Android 3.0 root alone can have a program dump its heap, and adb's shell "
        "is not root; try adb root, or have the program call Debug.dumpHprofData and "
        "name "
        "that file by --pull");
  }

  Status FindPid(const Adb& adb) {
    pid_ = process_;
    if (IsNumber(pid_))
      return {};
    HPD_TRY_ASSIGN(const std::string processes, adb.Shell("ps"));
    std::vector<std::string> pids;
    std::istringstream lines(processes);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string user, pid, name;
      words >> user >> pid;
      for (std::string word; words >> word;)
        name = word;
      if (name == process_ && IsNumber(pid))
        pids.push_back(pid);
    }
    if (pids.size() != 1)
      return Unavailable(std::to_string(pids.size()) +
                         " processes on the device have this name; adb shell ps lists "
                         "all, name one by -p");
    pid_ = pids[0];
    return {};
  }

  // It ends a process that does nothing about it. Dalvik blocks it, and waits for it.
  Status CheckTakesSignal(const Adb& adb) const {
    HPD_TRY_ASSIGN(const std::string status, adb.Shell(root_ + "cat /proc/" + pid_ +
                                                       "/status" + kToStandardOutput));
    if (status.find("SigBlk:") == std::string::npos)
      return Unavailable("process " + pid_ + " cannot be looked into: \"" +
                         FirstLine(status) + "\"");
    constexpr uint64_t kBit = uint64_t{1} << 9;  // of signal 10
    for (const std::string_view key : {"SigBlk:", "SigCgt:"}) {
      const size_t at = status.find(key);
      if (at != std::string::npos &&
          (strtoull(status.c_str() + at + key.size(), nullptr, 16) & kBit) != 0)
        return {};
    }
    return Unavailable(
        "process " + pid_ +
        " does not wait for SIGUSR1, which would end it; is it a program of Java?");
  }

  std::string process_;
  std::string pid_;
  std::string directory_ = kSignalDirectory;
  std::string copy_ = OwnPath();
  bool may_have_copy_ = false;
  std::vector<ListedFile> before_;
  bool is_asked_ = false;
};

}  // namespace

std::unique_ptr<DumpPlace> ActivityManagerDump(const std::string& process,
                                               bool with_garbage,
                                               int sdk) {
  return std::make_unique<OfActivityManager>(process, with_garbage, sdk);
}

std::unique_ptr<DumpPlace> SignalDump(const std::string& process) {
  return std::make_unique<OfSignal>(process);
}

Result<std::string> DumpPlace::PathToFetch(const Adb& /*adb*/, const std::string& name) {
  return directory() + "/" + name;
}

Result<std::vector<ListedFile>> DumpPlace::List(const Adb& adb) const {
  HPD_TRY_ASSIGN(const std::string text,
                 adb.Shell(root_ + "ls -l " + directory() + "/" + kToStandardOutput));
  std::vector<ListedFile> files;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(line.find_last_not_of("\r ") + 1);
    files.push_back({line.substr(line.rfind(' ') + 1), line});
  }
  return files;
}

}  // namespace heapprofd
