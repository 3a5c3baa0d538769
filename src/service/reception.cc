#include "service/reception.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <optional>

#include "base/files/passed_fds.h"
#include "base/unix_address.h"
#include "wire/control.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr PendingClients::Limits kLimits = {
    .all = 16'384, .of_user = 2048, .patience_ns = 4'000'000'000, .per_turn = 64};

}  // namespace

Reception::Reception(FilePlace place) : place_(std::move(place)), clients_(kLimits) {}

Result<std::unique_ptr<Reception>> Reception::Open(const FilePlace& place,
                                                   ScopedFd listener) {
  std::unique_ptr<Reception> reception(new Reception(place));
  reception->listener_ = std::move(listener);
  if (!reception->listener_.valid())
    HPD_TRY(reception->Listen());
  else
    RefuseFds(reception->listener_.get());
  return reception;
}

// Whoever comes later need not wait for an answer.
Reception::~Reception() {
  if (owns_socket_)
    unlink(place_.at.c_str());
}

Status Reception::Listen() {
  listener_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid())
    return Status::FromErrno("cannot listen on " + place_.path, errno);
  const std::optional<sockaddr_un> address = UnixAddress(place_.at);
  // The others connect by the path.
  if (!address || !UnixAddress(place_.path))
    return Status(StatusCode::kInvalidArgument,
                  "cannot listen on " + place_.path +
                      ": the path is too long; name a shorter "
                      "one with --directory");
  RefuseFds(listener_.get());  // before anybody can connect
  unlink(place_.at.c_str());   // left by a service that was killed: the lock is ours
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&*address),
           sizeof(*address)) != 0 ||
      chmod(place_.at.c_str(), geteuid() == 0 ? 0666 : 0600) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0)
    return Status::FromErrno("cannot listen on " + place_.path, errno);
  owns_socket_ = true;
  return {};
}

void Reception::AddTo(std::vector<pollfd>* fds) const {
  fds->push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  clients_.AddTo(fds);
}

int Reception::MillisecondsToNext() const {
  if (is_behind_)
    return 0;
  const int wait_ms = clients_.MillisecondsToDeadline();
  return wait_ms == INT_MAX ? -1 : wait_ms;
}

void Reception::Serve(const std::function<void(Visitor)>& admit) {
  const bool more_wait = clients_.Accept(listener_.get());
  const bool more_speak =
      clients_.Serve([&admit](PendingClients::Client& client, uint64_t magic) {
        if (magic != kControlMagic && magic != kHandshakeMagic)
          return;
        Result<Visitor> visitor = Identify(std::move(client.fd));
        if (!visitor.ok())
          return;
        visitor.value().is_command = magic == kControlMagic;
        admit(std::move(visitor).value());
      });
  is_behind_ = more_wait || more_speak;
}

}  // namespace heapprofd
