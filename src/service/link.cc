#include "service/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/passed_fds.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxLinkFds = 2;
constexpr char kCommandText[] = "command";

struct Header {
  uint64_t number;
  LinkType type;
  uint32_t text_size;
};

static_assert(sizeof(Header) == 16);

using FdSpace = std::array<char, CMSG_SPACE(kMaxLinkFds * sizeof(int))>;

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
  Header header{
      .number = message.number,
      .type = message.type,
      .text_size = static_cast<uint32_t>(std::min(message.text.size(), kMaxLinkText))};
  std::array<iovec, 2> parts = {
      {{.iov_base = &header, .iov_len = sizeof(header)},
       {.iov_base = const_cast<char*>(message.text.data()),  // is only read
        .iov_len = header.text_size}}};
  alignas(cmsghdr) FdSpace control{};
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();
  PutFds(fds, control, &packet);
  while (sendmsg(fd_.get(), &packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN || errno == ENOBUFS)
      return false;
    if (errno != EINTR)
      return true;
  }
  return true;
}

Result<std::optional<LinkMessage>> Link::Receive() const {
  Header header{};
  std::array<char, kMaxLinkText> text{};
  std::array<iovec, 2> parts = {{{.iov_base = &header, .iov_len = sizeof(header)},
                                 {.iov_base = text.data(), .iov_len = text.size()}}};
  alignas(cmsghdr) FdSpace control{};
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();
  packet.msg_control = control.data();
  packet.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = recvmsg(fd_.get(), &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN)
    return std::optional<LinkMessage>();
  if (got <= 0)
    return Status(StatusCode::kUnavailable, "the other side is gone");
  LinkMessage message;
  TakeFds(&packet, &message.fds);
  if (static_cast<size_t>(got) < sizeof(header) ||
      header.text_size != static_cast<size_t>(got) - sizeof(header))
    return Status(StatusCode::kCorrupt, "cannot understand a message between processes");
  message.type = header.type;
  message.number = header.number;
  message.text.assign(text.data(), header.text_size);
  return std::optional<LinkMessage>(std::move(message));
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
