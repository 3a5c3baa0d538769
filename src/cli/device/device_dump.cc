#include "cli/device/device_dump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/files/private_directory.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/device/adb.h"
#include "cli/device/dump_places.h"
#include "cli/record/signals.h"
#include "hotspot/dump_room.h"
#include "hprof/dump_file.h"
#include "hprof/merge.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr int kDumpLookMs = 500;
constexpr uint64_t kCleanUpPatienceNs = 10'000'000'000;
constexpr int kFirstVersionThatDumps = 11;  // of the SDK: Android 3.0
constexpr std::string_view kHeadSuffix = "-head";
constexpr char kNoDump[] =
    "what adb fetches there is no file; look what it is, and name a dump";

uint64_t BytesOf(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool IsNoFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// What adb writes.
class PulledFiles {
 public:
  static Result<PulledFiles> Create() {
    HPD_TRY_ASSIGN(PrivateDirectory directory,
                   PrivateDirectory::Create("heap_profile-dump"));
    return PulledFiles(std::move(directory));
  }

  // A whole dump, or all but the names.
  std::string tail() const { return directory_.path() + "/dump.hprof"; }

  std::string head() const { return tail() + std::string(kHeadSuffix); }

  std::string PathFor(const std::string& name) const {
    return name.ends_with(kHeadSuffix) ? head() : tail();
  }

  uint64_t bytes() const { return BytesOf(tail()) + BytesOf(head()); }

  // Of a directory adb fetches all that is in it, which bytes() does not count.
  bool has_other_than_files() const { return IsNoFile(tail()) || IsNoFile(head()); }

  uint64_t room() const {
    const ScopedFd directory(
        open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return RoomOnDisk(directory.get());
  }

 private:
  explicit PulledFiles(PrivateDirectory directory) : directory_(std::move(directory)) {}

  PrivateDirectory directory_;
};

// Empty: it is whole.
std::string WhyNotWhole(const hprof::MappedInput& input) {
  const Result<hprof::DumpFile> file = hprof::DumpFile::Read(input.bytes(), "it");
  if (!file.ok())
    return file.status().message();
  if (file.value().dumps().empty())
    return "it has no heap yet";
  return input.damage().empty() ? file.value().damage() : input.damage();
}

// Ctrl-C and the like, kept from ending us until this is gone: whatever must not be left
// behind goes before it.
class HeldStops {
 public:
  HeldStops() : signals_(SignalSource::kTerminal), fd_(StopRequests()) {}

  HeldStops(const HeldStops&) = delete;
  HeldStops& operator=(const HeldStops&) = delete;

  // A request that has ended something here does not end us as well.
  ~HeldStops() {
    if (was_heard_)
      Forget();
    sigprocmask(SIG_SETMASK, &mask(), nullptr);
  }

  // Whether one is pending.
  bool Hear() {
    const bool is_pending = Await(0);
    was_heard_ |= is_pending;
    return is_pending;
  }

  bool Await(int timeout_ms) const {
    pollfd readable{.fd = fd(), .events = POLLIN, .revents = 0};
    return poll(&readable, 1, timeout_ms) > 0;
  }

  void Forget() const {
    signalfd_siginfo heard{};
    while (read(fd(), &heard, sizeof(heard)) == sizeof(heard))
      continue;
  }

  int fd() const { return fd_.get(); }

  // That of before.
  const sigset_t& mask() const { return signals_.original_mask(); }

 private:
  SteeringSignals signals_;
  ScopedFd fd_;
  bool was_heard_ = false;
};

class DumpFetch {
 public:
  DumpFetch(const DeviceDumpRequest& request, PulledFiles files, HeldStops* stops)
      : request_(request),
        files_(std::move(files)),
        room_(files_.room()),
        stops_(stops),
        adb_(stops->mask(),
             {.fd = stops->fd(), .is_over = [this] { return IsOver(); }},
             [this] { last_ns_ = MonotonicNs(); }) {
    Progress("asking the device");
  }

  DumpFetch(const DumpFetch&) = delete;
  DumpFetch& operator=(const DumpFetch&) = delete;

  Result<DeviceDump> Run() {
    Result<DeviceDump> dump = request_.existing.empty() ? Take() : PullExisting();
    if (dump.ok())
      return dump;
    const Status& status = dump.status();
    return Status(
        status.code() == StatusCode::kTryAgain ? StatusCode::kUnavailable : status.code(),
        "cannot " +
            (request_.existing.empty()
                 ? "take a heap dump of " + request_.process + " on the device: "
                 : "fetch " + request_.existing + " from the device: ") +
            Cause(status) + left_);
  }

 private:
  void Progress(const std::string& stage) {
    stage_ = stage;
    last_ns_ = MonotonicNs();
    request_.show(stage);
  }

  bool IsStopped() {
    const bool is_stopped = stops_->Hear();
    is_interrupted_ |= is_stopped && !is_cleaning_up_;
    return is_stopped;
  }

  // Of adb that fetches, what it has fetched is progress.
  bool IsOver() {
    const uint64_t bytes = files_.bytes();
    if (bytes != std::exchange(bytes_, bytes))
      Progress("fetching, " + FormatBytes(static_cast<double>(bytes)));
    return IsStopped() ||
           (!is_cleaning_up_ && (bytes > room_ || files_.has_other_than_files())) ||
           MonotonicNs() > last_ns_ + patience_ns();
  }

  uint64_t patience_ns() const {
    return is_cleaning_up_ ? kCleanUpPatienceNs : request_.patience_ns;
  }

  std::string Cause(const Status& status) const {
    if (status.code() != StatusCode::kTryAgain)
      return status.message();
    if (is_interrupted_)
      return "interrupted";
    if (files_.has_other_than_files())
      return kNoDump;
    if (bytes_ > room_)
      return "it is larger than the " + FormatBytes(static_cast<double>(room_)) +
             " that there is for it; set TMPDIR to a directory with more room";
    return "nothing has come for " +
           FormatDuration(static_cast<double>(request_.patience_ns) / 1e9) + " (" +
           stage_ + "); look what the device does, or wait longer with --timeout";
  }

  Result<DeviceDump> Take() {
    HPD_TRY_ASSIGN(const int sdk, adb_.SdkVersion());
    const std::unique_ptr<DumpPlace> place =
        sdk < kFirstVersionThatDumps
            ? SignalDump(request_.process)
            : ActivityManagerDump(request_.process, request_.with_garbage, sdk);
    Progress("dumping");
    const Status asked = place->Ask(adb_);
    Result<hprof::MappedInput> input =
        asked.ok() ? Await(*place) : Result<hprof::MappedInput>(asked);
    CleanUp(*place);
    if (!input.ok())
      return input.status();
    DeviceDump dump{std::move(input.value()), place->notes()};
    if (!left_.empty())
      dump.notes.push_back(left_.substr(2));
    return dump;
  }

  // Whoever does not want to wait for this either asks once more.
  void CleanUp(DumpPlace& place) {
    stops_->Forget();
    const std::string stage = stage_;
    is_cleaning_up_ = true;
    Progress("cleaning up on the device");
    const Status removed = place.Remove(adb_);
    stage_ = stage;
    if (!removed.ok())
      left_ = "; a dump may remain in " + place.directory() + " on the device (" +
              (removed.code() == StatusCode::kTryAgain ? "adb has not removed it"
                                                       : removed.message()) +
              "): remove it";
  }

  // A file that stays as it is may be whole; whether it is, it says itself.
  Result<hprof::MappedInput> Await(DumpPlace& place) {
    std::string before;
    std::string pulled;
    while (true) {
      HPD_TRY_ASSIGN(const std::vector<ListedFile> all, Look(place));
      std::string now;
      std::vector<std::string> names;
      for (const ListedFile& file : all)
        if (place.IsPart(file.name)) {
          now += file.line + "\n";
          names.push_back(file.name);
        }
      if (now != before) {
        Progress("dumping");
      } else if (now != pulled) {
        pulled = now;
        Progress("fetching");
        HPD_TRY_ASSIGN(std::optional<hprof::MappedInput> whole, PullWhole(place, names));
        if (whole)
          return std::move(*whole);
      }
      before = now;
      HPD_TRY(Pause());
    }
  }

  // That the device answers is no part of a dump.
  Result<std::vector<ListedFile>> Look(const DumpPlace& place) {
    const uint64_t last_ns = last_ns_;
    Result<std::vector<ListedFile>> files = place.List(adb_);
    last_ns_ = last_ns;
    return files;
  }

  Status Pause() {
    stops_->Await(kDumpLookMs);
    return IsOver() ? Status(StatusCode::kTryAgain, "") : Status();
  }

  // Nothing: it is not whole yet.
  Result<std::optional<hprof::MappedInput>> PullWhole(
      DumpPlace& place, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      HPD_TRY_ASSIGN(const std::string path, place.PathToFetch(adb_, name));
      HPD_TRY(Pull(path, files_.PathFor(name)));
    }
    std::vector<std::string> notes;
    Result<hprof::MappedInput> input = hprof::OpenWhole(files_.tail(), &notes);
    const std::string why =
        input.ok() ? WhyNotWhole(input.value()) : input.status().message();
    if (IsStopped())
      return Status(StatusCode::kTryAgain, "");
    if (why.empty())
      return std::optional(std::move(input.value()));
    Progress("what is there is not whole: " + why);
    return std::optional<hprof::MappedInput>();
  }

  Status Pull(const std::string& path, const std::string& to) {
    HPD_TRY_ASSIGN(const CommandResult result, adb_.Run({"pull", path, to}));
    if (IsNoFile(to))
      return Status(StatusCode::kUnavailable, kNoDump);
    if (result.exit_code == 0 && access(to.c_str(), R_OK) == 0)
      return {};
    return Status(StatusCode::kUnavailable,
                  "adb pull " + path + " fails: " + result.output.substr(0, 300));
  }

  // It is shown as far as it goes. The other half need not be there.
  Result<DeviceDump> PullExisting() {
    std::string path = request_.existing;
    if (path.ends_with(kHeadSuffix))
      path.resize(path.size() - kHeadSuffix.size());
    Progress("fetching");
    Status pulled = Pull(path, files_.tail());
    if (pulled.ok()) {
      const Status head = Pull(path + std::string(kHeadSuffix), files_.head());
      if (head.code() == StatusCode::kTryAgain)
        pulled = head;
    }
    HPD_TRY(pulled);
    std::vector<std::string> notes;
    HPD_TRY_ASSIGN(hprof::MappedInput input, hprof::OpenWhole(files_.tail(), &notes));
    return DeviceDump{std::move(input), {}};
  }

  const DeviceDumpRequest& request_;
  PulledFiles files_;
  uint64_t room_;  // bytes that they may have
  HeldStops* stops_;
  std::string stage_;
  uint64_t last_ns_ = 0;         // CLOCK_MONOTONIC, of the last that came
  uint64_t bytes_ = 0;           // fetched
  bool is_interrupted_ = false;  // before there was nothing left but to clean up
  bool is_cleaning_up_ = false;
  std::string left_;  // what is left on the device, for messages
  Adb adb_;
};

}  // namespace

Result<DeviceDump> FetchDeviceDump(const DeviceDumpRequest& request) {
  HeldStops stops;
  HPD_TRY_ASSIGN(PulledFiles files, PulledFiles::Create());
  return DumpFetch(request, std::move(files), &stops).Run();
}

}  // namespace heapprofd
