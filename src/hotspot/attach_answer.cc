#include "hotspot/attach_answer.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace heapprofd {
namespace {

constexpr size_t kMaxAnswer = size_t{16} << 10;

Status AnswerStatus(const std::string& code, const std::string& text) {
  if (code == "0")
    return {};
  return Status(StatusCode::kUnavailable, "it answers " + code + ", \"" + text + "\"");
}

}  // namespace

Result<std::string> ReceiveAnswer(int socket, const Sender& sender) {
  std::string answer;
  std::array<char, 4096> piece{};
  while (answer.size() < kMaxAnswer) {
    HPD_TRY(sender.Await(socket, POLLIN, Sender::kAsLong));
    const ssize_t count = recv(socket, piece.data(), piece.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (count < 0)
      return Status::FromErrno("its answer cannot be read", errno);
    if (count == 0)
      break;
    answer.append(piece.data(), static_cast<size_t>(count));
  }
  const size_t end = answer.find('\n');
  if (end == std::string::npos)
    return Status(StatusCode::kIo, "it closed the connection without an answer");
  std::string text = answer.substr(end + 1);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  HPD_TRY(AnswerStatus(answer.substr(0, end), text));
  return text;
}

}  // namespace heapprofd
