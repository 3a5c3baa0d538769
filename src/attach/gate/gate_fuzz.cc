// Whoever watches may send the gate what he likes: here line by line, the first one with
// its size, as if it were his names; and he reads what the gate says to that.
#include <fcntl.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attach/gate/gate.h"
#include "attach/gate/gate_link.h"
#include "attach/gate/mount_list.h"
#include "base/files/passed_fds.h"

namespace {

using heapprofd::ScopedFd;

struct Pair {
  Pair() {
    std::array<int, 2> fds{-1, -1};
    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data());
    ours = ScopedFd(fds[0]);
    theirs = ScopedFd(fds[1]);
  }

  ScopedFd ours;
  ScopedFd theirs;
};

void Execute(int group) {
  fanotify_event_metadata event{};
  event.event_len = sizeof(event);
  event.vers = FANOTIFY_METADATA_VERSION;
  event.metadata_len = sizeof(event);
  event.mask = FAN_OPEN_EXEC_PERM;
  event.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  event.pid = getpid();
  send(group, &event, sizeof(event), MSG_DONTWAIT);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  signal(SIGPIPE, SIG_IGN);  // the gate ends connections
  heapprofd::OverlayLayers(text);
  const std::vector<heapprofd::Mount> mounts = heapprofd::ParseMountInfo(text);
  heapprofd::LocalMounts(mounts, mounts, [](const std::string&) { return 1; });
  Pair control;
  Pair group;
  heapprofd::GateEnds watchers;
  heapprofd::GateEnds gates;
  heapprofd::OpenGateEnds(&watchers, &gates);
  Pair places;
  const ScopedFd place(open("/", O_PATH | O_CLOEXEC));
  heapprofd::SendWithFds(control.ours.get(), heapprofd::kWatchRequest,
                         {gates.socket.get(), gates.pipe.get(), places.theirs.get()});
  heapprofd::SendWithFds(places.ours.get(), "m", {place.get()});
  places.ours.reset();
  gates = {};
  std::optional<heapprofd::Gate> gate;
  gate.emplace(std::move(control.theirs), std::move(group.theirs),
               [](const char*) { return true; });
  const auto first =
      static_cast<heapprofd::GateSize>(std::min(text.find('\n'), text.size()));
  const ScopedFd pipe(dup(watchers.pipe.get()));
  heapprofd::GateLink link(std::move(watchers));  // reads what the gate says to that
  ssize_t written = write(pipe.get(), &first, sizeof(first));
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    written = write(pipe.get(), text.data(), end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Execute(group.ours.get());
    for (int i = 0; i < 3; ++i)  // connection, names and mounts, what comes then
      gate->Turn(0);
    while (link.Receive())
      continue;
    fanotify_response answer{};  // or there is no room for more
    while (recv(group.ours.get(), &answer, sizeof(answer), MSG_DONTWAIT) > 0)
      continue;
  }
  static_cast<void>(written);
  gate.reset();
  while (link.Receive())
    continue;
  return 0;
}
