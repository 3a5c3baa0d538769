#include "service/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/files/passed_fds.h"

namespace heapprofd {
namespace {

constexpr char kCommandText[] = "command";

struct Header {
  uint64_t number;
  LinkType type;
  uint32_t text_size;
};

static_assert(sizeof(Header) == 16);

}  // namespace

Result<std::pair<Link, Link>> Link::Pair() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) !=
      0)
    return Status(StatusCode::kUnavailable,
                  std::string("cannot reach a process of its own for this user: ") +
                      strerror(errno) + "; try again when others have ended");
  RefuseFds(fds[0]);
  return std::pair(Link(ScopedFd(fds[0])), Link(ScopedFd(fds[1])));
}

bool Link::Send(const LinkMessage& message, const std::vector<int>& fds) const {
  return unsent_.empty() && SendNow(message, fds);
}

bool Link::Say(LinkMessage message) {
  if (unsent_.size() >= kMaxUnsent)
    return false;
  unsent_.push_back(std::move(message));
  SendRest();
  return true;
}

bool Link::SendRest() {
  for (; !unsent_.empty(); unsent_.pop_front()) {
    std::vector<int> fds;
    for (const ScopedFd& fd : unsent_.front().fds)
      fds.push_back(fd.get());
    if (!SendNow(unsent_.front(), fds))
      return false;
  }
  return true;
}

bool Link::SendNow(const LinkMessage& message, const std::vector<int>& fds) const {
  const Header header{
      .number = message.number,
      .type = message.type,
      .text_size = static_cast<uint32_t>(std::min(message.text.size(), kMaxLinkText))};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(message.text, 0, header.text_size);
  return SendWithFds(fd_.get(), bytes, fds, MSG_DONTWAIT) ||
         (errno != EAGAIN && errno != ENOBUFS);
}

Result<std::optional<LinkMessage>> Link::Receive() const {
  Header header{};
  Packet packet = ReceiveWithFds(fd_.get(), sizeof(header) + kMaxLinkText);
  if (packet.is_end)
    return Status(StatusCode::kUnavailable, "the other side is gone");
  const size_t size = packet.bytes.size();
  if (size == 0)
    return std::optional<LinkMessage>();
  memcpy(&header, packet.bytes.data(), std::min(size, sizeof(header)));
  if (size < sizeof(header) || header.text_size != size - sizeof(header))
    return Status(StatusCode::kCorrupt, "cannot understand a message between processes");
  return std::optional(LinkMessage{.type = header.type,
                                   .number = header.number,
                                   .text = packet.bytes.substr(sizeof(header)),
                                   .fds = std::move(packet.fds)});
}

bool SendVisitor(const Link& link, const Visitor& visitor) {
  return link.Send({.type = LinkType::kVisitor,
                    .number = visitor.others,
                    .text = visitor.is_command ? kCommandText : ""},
                   {visitor.connection.get(), visitor.process.get()});
}

Result<Visitor> TakeVisitor(LinkMessage message) {
  if (message.fds.empty())
    return Status(StatusCode::kCorrupt, "a visitor without a connection");
  HPD_TRY_ASSIGN(Visitor visitor, Identify(UntrustedSocket(std::move(message.fds[0]))));
  if (message.fds.size() > 1)  // as it was when he came
    visitor.process = std::move(message.fds[1]);
  visitor.others = message.number;
  visitor.is_command = message.text == kCommandText;
  return visitor;
}

}  // namespace heapprofd
