#include "attach/gate/gate.h"

#include <limits.h>
#include <sys/fanotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "attach/remote_process.h"
#include "base/clock.h"
#include "base/fd_path.h"
#include "base/files/passed_fds.h"

namespace heapprofd {
namespace {

constexpr size_t kOwnFds = 2;  // in Gate::fds_
constexpr size_t kFdsOfWatcher = 3;
constexpr size_t kEventsPerTurn = 16;  // each is a descriptor
constexpr int kMessagesPerTurn = 8;    // of one watcher
constexpr int kMountsPerTurn = 16;     // of one scan
constexpr size_t kStatusSize = 4096;

std::string PathOf(int fd) {
  std::array<char, PATH_MAX> path;
  const ssize_t length = readlink(FdPath(fd).c_str(), path.data(), path.size());
  return std::string(path.data(), length > 0 ? static_cast<size_t>(length) : 0);
}

// Of his next message, as far as that is known.
size_t SizeOfNext(bool has_names, std::string_view unread) {
  GateSize size = 0;
  if (has_names)
    return sizeof(GateAnswer);
  if (unread.size() < sizeof(size))
    return sizeof(size);
  memcpy(&size, unread.data(), sizeof(size));
  return sizeof(size) + size;
}

bool Send(int socket, const GateMessage& message, std::string_view text) {
  text = text.substr(0, kMaxGateText);
  std::array<iovec, 2> parts = {
      {{.iov_base = const_cast<GateMessage*>(&message), .iov_len = sizeof(message)},
       {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()}}};
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();
  return sendmsg(socket, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void Refuse(int socket, std::string_view why) {
  Send(socket, {.news = GateNews::kRefused}, why);
}

}  // namespace

Gate::Gate(ScopedFd control, ScopedFd group, Mark mark)
    : control_(std::move(control)),
      group_(std::move(group)),
      mark_(std::move(mark)),
      held_(group_.get()),
      buffer_(sizeof(GateSize) + ExecNames::kMaxBytes) {
  watchers_.reserve(kMaxWatchers);
}

Gate::~Gate() = default;

bool Gate::Turn(int max_wait_ms) {
  CollectFds();
  poll(fds_.data(), fds_.size(), WaitMs(max_wait_ms));
  if (fds_[1].revents != 0)
    AnswerEvents();
  // From the end: those that are added or removed do not move the ones to come.
  for (size_t i = watchers_.size(); i-- > 0;) {
    if (!Serve(*watchers_[i], &fds_[kOwnFds + kFdsOfWatcher * i]))
      Remove(i);
  }
  held_.AllowOverdue();
  return fds_[0].revents == 0 || HearOwner();
}

void Gate::CollectFds() {
  fds_.clear();
  fds_.push_back({.fd = control_.get(), .events = POLLIN, .revents = 0});
  fds_.push_back({.fd = group_.get(), .events = POLLIN, .revents = 0});
  for (const std::unique_ptr<Watcher>& watcher : watchers_) {
    const bool has_news = watcher->is_ready && watcher->missed > 0;
    fds_.push_back({.fd = watcher->socket.get(),
                    .events = static_cast<short>(has_news ? POLLOUT : 0),
                    .revents = 0});
    fds_.push_back({.fd = watcher->pipe.get(), .events = POLLIN, .revents = 0});
    fds_.push_back({.fd = watcher->mounts.get(), .events = POLLIN, .revents = 0});
  }
}

int Gate::WaitMs(int max_wait_ms) const {
  const uint64_t next = held_.next_ns();
  if (next == ~uint64_t{0})
    return max_wait_ms;
  const uint64_t now = MonotonicNs();
  const int wait_ms = next <= now ? 0 : static_cast<int>((next - now) / kNsPerMs + 1);
  return max_wait_ms < 0 ? wait_ms : std::min(wait_ms, max_wait_ms);
}

void Gate::AnswerEvents() {
  alignas(fanotify_event_metadata)
      std::array<char, kEventsPerTurn * sizeof(fanotify_event_metadata)>
          buffer;
  // The kernel opens the programs meanwhile. It refuses the exec of one that cannot be
  // opened at once, because its owner has a lease (fcntl(2)) on it.
  ssize_t size = read(group_.get(), buffer.data(), buffer.size());
  const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
  for (; FAN_EVENT_OK(event, size); event = FAN_EVENT_NEXT(event, size)) {
    if (event->fd >= 0)
      Answer(ScopedFd(event->fd), event->pid);
    if ((event->mask & FAN_Q_OVERFLOW) != 0) {
      for (const std::unique_ptr<Watcher>& watcher : watchers_)
        watcher->missed += watcher->is_ready ? 1u : 0u;
    }
  }
}

// One watcher gets it: a thread has one tracer. The others are told.
void Gate::Answer(ScopedFd file, pid_t tid) {
  const std::string path = PathOf(file.get());
  std::optional<FourIds> who;
  for (const std::unique_ptr<Watcher>& watcher : watchers_) {
    if (!watcher->is_ready || !watcher->names.MayMatch(path))
      continue;
    if (!who &&
        !(who = StatusIds(ReadProcFile(ProcPath(tid, "status"), kStatusSize), "Uid")))
      break;  // it is gone
    // One exec opens several files: a script, its interpreter, a loader.
    if (held_.IsHeldFor(watcher.get(), tid))
      continue;
    const bool is_told =
        file.valid()
            ? Hold(*watcher, &file, tid, who->front(), path)
            : Send(watcher->socket.get(), {.news = GateNews::kTaken, .tid = tid}, path);
    watcher->missed += is_told ? 0u : 1u;
  }
  if (file.valid())
    Permit(group_.get(), file.get());
}

bool Gate::Hold(
    Watcher& watcher, ScopedFd* file, pid_t tid, uid_t user, const std::string& path) {
  if (!held_.HasRoomFor(user))
    return false;
  const GateMessage message{.news = GateNews::kHeld,
                            .tid = tid,
                            .number = held_.next_serial(),
                            .until_ns = MonotonicNs() + kMaxHoldNs};
  if (!Send(watcher.socket.get(), message, path))
    return false;
  watcher.answers_left += kAnswersPerExec;
  held_.Add(std::move(*file),
            {.holder = &watcher, .tid = tid, .user = user, .until_ns = message.until_ns});
  return true;
}

bool Gate::HearOwner() {
  Packet packet = ReceiveWithFds(control_.get(), kWatchRequest.size());
  if (packet.bytes != kWatchRequest || packet.fds.size() != 3)
    return !packet.is_end;
  AddWatcher(std::move(packet.fds));
  const GateReply reply{.error = 0};
  return send(control_.get(), &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
         errno == EAGAIN;
}

void Gate::AddWatcher(std::vector<ScopedFd> fds) {
  if (watchers_.size() >= kMaxWatchers)
    return Refuse(fds[0].get(),
                  "cannot watch for new processes: " + std::to_string(kMaxWatchers) +
                      " recordings by name run already; stop one");
  auto watcher = std::make_unique<Watcher>();
  watcher->socket = std::move(fds[0]);
  watcher->pipe = std::move(fds[1]);
  watcher->mounts = std::move(fds[2]);
  watcher->mounts_until_ns = MonotonicNs() + kMaxScanNs;
  watchers_.push_back(std::move(watcher));
}

bool Gate::Serve(Watcher& watcher, const pollfd* fds) {
  const short events = fds[0].revents;
  if ((events & (POLLHUP | POLLERR)) != 0 || (fds[1].revents != 0 && !Hear(watcher)))
    return false;
  if (watcher.mounts.valid())
    MarkMounts(watcher, fds[2].revents != 0);
  if (!watcher.is_ready && watcher.has_names && !watcher.mounts.valid())
    return BeReady(watcher);
  if ((events & POLLOUT) != 0 &&
      Send(watcher.socket.get(), {.news = GateNews::kMissed, .number = watcher.missed},
           ""))
    watcher.missed = 0;
  return true;
}

bool Gate::Hear(Watcher& watcher) {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    const size_t size = SizeOfNext(watcher.has_names, watcher.unread);
    if (size > buffer_.size())
      return false;
    const ssize_t got =
        read(watcher.pipe.get(), buffer_.data(), size - watcher.unread.size());
    if (got <= 0)
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    watcher.unread.append(buffer_.data(), static_cast<size_t>(got));
    if (watcher.unread.size() < SizeOfNext(watcher.has_names, watcher.unread))
      continue;
    const std::string message = std::exchange(watcher.unread, {});
    if (!(watcher.has_names ? Obey(watcher, message)
                            : TakeNames(watcher, message.substr(sizeof(GateSize)))))
      return false;
  }
  return true;
}

bool Gate::TakeNames(Watcher& watcher, std::string_view bytes) {
  std::optional<ExecNames> names = ExecNames::Decode(bytes);
  if (!names)
    return false;
  watcher.names = std::move(*names);
  watcher.has_names = true;
  return true;
}

bool Gate::Obey(Watcher& watcher, std::string_view bytes) {
  GateAnswer answer{};
  if (bytes.size() != sizeof(answer) || watcher.answers_left == 0)
    return false;
  --watcher.answers_left;
  memcpy(&answer, bytes.data(), sizeof(answer));
  if (answer.wish == GateWish::kAllow)
    held_.AllowAt(&watcher, answer.serial,
                  MonotonicNs() + uint64_t{answer.after_us} * kNsPerUs);
  else
    held_.Done(&watcher, answer.serial);
  return true;
}

// All that have been found are marked again for each watcher: there may be new ones.
void Gate::MarkMounts(Watcher& watcher, bool is_readable) {
  bool is_over = false;
  for (int i = 0; is_readable && i < kMountsPerTurn; ++i) {
    const Packet packet = ReceiveWithFds(watcher.mounts.get(), 1);
    is_over = packet.is_end;
    if (packet.bytes == kMountsLeftOut)
      NoteLeftOut();
    if (packet.fds.empty())
      break;
    const std::string path = FdPath(packet.fds[0].get());
    if (mark_(path.c_str()))
      ++marks_;
    else
      mark_error_ = errno;
  }
  const bool is_late = MonotonicNs() >= watcher.mounts_until_ns;
  watcher.is_incomplete |= is_late;
  if (is_over || is_late)
    watcher.mounts.reset();
}

// The socket may be that of several.
void Gate::NoteLeftOut() {
  for (const std::unique_ptr<Watcher>& watcher : watchers_)
    watcher->is_incomplete |= watcher->mounts.valid();
}

bool Gate::BeReady(Watcher& watcher) {
  if (marks_ == 0) {
    Refuse(watcher.socket.get(),
           std::string("cannot watch any file system for new processes: ") +
               (mark_error_ != 0 ? strerror(mark_error_)
                                 : "none of those that were found is local") +
               "; attach to programs with -p once they run");
    return false;
  }
  watcher.is_ready = true;
  return Send(watcher.socket.get(), {.news = GateNews::kReady},
              watcher.is_incomplete
                  ? "cannot watch all file systems for new processes: to list them took "
                    "too long; programs of some may be missing, attach to them with -p"
                  : "");
}

void Gate::Remove(size_t index) {
  held_.DoneWithAll(watchers_[index].get());
  watchers_.erase(watchers_.begin() + static_cast<ptrdiff_t>(index));
  if (!watchers_.empty())
    return;
  mark_(nullptr);
  marks_ = 0;
}

}  // namespace heapprofd
