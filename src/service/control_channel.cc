#include "service/control_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/files/folder.h"
#include "base/files/passed_fds.h"
#include "base/unix_address.h"

namespace heapprofd {
namespace {

constexpr timeval kConnectPatience = {.tv_sec = 5, .tv_usec = 0};
constexpr size_t kReadSize = size_t{64} << 10;

Status Closed() {
  return Status(StatusCode::kUnavailable, "the other side has closed the connection");
}

// Whoever listens gets our terminal and our trace, and is believed. Anybody can listen in
// a place that others can write to.
Status CheckPeer(const std::string& path, int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      (peer.uid == 0 || peer.uid == geteuid()))
    return {};
  return Status(StatusCode::kUnavailable,
                "cannot use the service at " + path + ": it is run by user " +
                    std::to_string(peer.uid) +
                    ", who is neither you nor root; remove it, or set "
                    "HEAPPROFD_DIRECTORY to the place of another one");
}

// What root's path leads to is for root to decide.
Status CheckPlace(const std::string& path) {
  if (geteuid() != 0 || IsUnalterable(path.substr(0, path.rfind('/'))))
    return {};
  return Status(StatusCode::kUnavailable,
                "cannot use the service at " + path +
                    ": other users can alter that place; set HEAPPROFD_DIRECTORY to one "
                    "that root alone can alter");
}

}  // namespace

Result<ControlChannel> ControlChannel::Connect(const std::string& path) {
  ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid())
    return Status::FromErrno("cannot connect to " + path, errno);
  const std::optional<sockaddr_un> address = UnixAddress(path);
  if (!address)
    return Status(StatusCode::kInvalidArgument, "cannot connect to " + path +
                                                    ": the path is too long; name "
                                                    "a shorter one by "
                                                    "HEAPPROFD_DIRECTORY");
  HPD_TRY(CheckPlace(path));
  // Connecting waits while others queue there.
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectPatience,
             sizeof(kConnectPatience));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) !=
      0)
    return Status(StatusCode::kNotFound,
                  "cannot connect to " + path + ": " + strerror(errno));
  HPD_TRY(CheckPeer(path, fd.get()));
  return ControlChannel(std::move(fd));
}

Status SendControlMessage(int fd,
                          ControlType type,
                          const std::string& payload,
                          const std::vector<int>& fds) {
  const ControlHeader header{.magic = kControlMagic,
                             .type = type,
                             .payload_size = static_cast<uint32_t>(payload.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += payload;
  std::string_view rest = bytes;
  for (std::vector<int> unsent = fds; !rest.empty(); unsent.clear()) {
    const std::optional<size_t> sent = SendWithFds(fd, rest, unsent, MSG_DONTWAIT);
    if (!sent)
      return Status::FromErrno("cannot send a control message", errno);
    rest.remove_prefix(*sent);
  }
  return {};
}

Result<std::optional<ControlMessage>> ControlChannel::TakeMessage() {
  ControlHeader header{};
  if (received_.size() < sizeof(header))
    return std::optional<ControlMessage>();
  memcpy(&header, received_.data(), sizeof(header));
  if (header.magic != kControlMagic || header.payload_size > kMaxControlPayload)
    return Status(StatusCode::kCorrupt, "cannot understand a control message");
  if (received_.size() < sizeof(header) + header.payload_size)
    return std::optional<ControlMessage>();
  ControlMessage message{.type = header.type,
                         .payload = received_.substr(sizeof(header), header.payload_size),
                         .fds = std::move(received_fds_)};
  received_fds_.clear();
  received_.erase(0, sizeof(header) + header.payload_size);
  return std::optional<ControlMessage>(std::move(message));
}

Result<std::optional<ControlMessage>> ControlChannel::Receive() {
  while (true) {
    HPD_TRY_ASSIGN(std::optional<ControlMessage> complete, TakeMessage());
    if (complete)
      return complete;
    Packet packet = ReceiveWithFds(fd_.get(), kReadSize);
    if (packet.is_end)
      return Closed();
    if (packet.bytes.empty())
      return std::optional<ControlMessage>();
    std::move(packet.fds.begin(), packet.fds.end(), std::back_inserter(received_fds_));
    if (received_fds_.size() > kMaxPassedFds)
      received_fds_.resize(kMaxPassedFds);  // closes the others
    received_ += packet.bytes;
  }
}

Result<ControlMessage> ControlChannel::Wait(int timeout_ms, int stop_fd) {
  while (true) {
    HPD_TRY_ASSIGN(std::optional<ControlMessage> message, Receive());
    if (message)
      return std::move(*message);
    std::array<pollfd, 2> readable = {
        pollfd{.fd = fd_.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = stop_fd, .events = POLLIN, .revents = 0}};
    const int ready = poll(readable.data(), readable.size(), timeout_ms);
    if (ready == 0 || readable[1].revents != 0)
      return Status(StatusCode::kTryAgain, "the other side does not answer");
  }
}

}  // namespace heapprofd
