#include "web/peer_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace heapprofd {
namespace {

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

struct Answer {
  nlmsghdr header;
  inet_diag_msg message;
};

// The socket whose own address is the peer's of ours.
std::optional<Question> QuestionAbout(int connection) {
  sockaddr_in here{};
  sockaddr_in there{};
  socklen_t size = sizeof(here);
  if (getsockname(connection, reinterpret_cast<sockaddr*>(&here), &size) != 0 ||
      here.sin_family != AF_INET)
    return std::nullopt;
  size = sizeof(there);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&there), &size) != 0)
    return std::nullopt;
  Question question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = AF_INET;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0u;
  request.id.idiag_sport = there.sin_port;
  request.id.idiag_dport = here.sin_port;
  request.id.idiag_src[0] = there.sin_addr.s_addr;
  request.id.idiag_dst[0] = here.sin_addr.s_addr;
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

}  // namespace

PeerUsers::PeerUsers()
    : kernel_(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {}

std::optional<Peer> PeerUsers::Of(int connection) const {
  const std::optional<Question> question = QuestionAbout(connection);
  if (!question || send(kernel_.get(), &*question, sizeof(*question), MSG_DONTWAIT) < 0)
    return std::nullopt;
  // The kernel has answered before send() returned.
  std::array<char, 4096> bytes{};
  const ssize_t got = recv(kernel_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  nlmsghdr header{};
  if (got < static_cast<ssize_t>(sizeof(header)))
    return std::nullopt;
  memcpy(&header, bytes.data(), sizeof(header));
  // Of a connection that is gone on the other side there is no socket.
  if (header.nlmsg_type == NLMSG_ERROR && got >= static_cast<ssize_t>(NLMSG_HDRLEN + 4)) {
    int error = 0;
    memcpy(&error, bytes.data() + NLMSG_HDRLEN, sizeof(error));
    return error == -ENOENT ? std::optional(Peer{.has_left = true}) : std::nullopt;
  }
  Answer answer{};
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      got < static_cast<ssize_t>(sizeof(answer)))
    return std::nullopt;
  memcpy(&answer, bytes.data(), sizeof(answer));
  return Peer{.user = answer.message.idiag_uid,
              .has_left = answer.message.idiag_inode == 0};
}

}  // namespace heapprofd
