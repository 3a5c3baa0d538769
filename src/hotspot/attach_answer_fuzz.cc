// What listens at a virtual machine's socket answers what its user likes.
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "hotspot/attach_answer.h"
#include "hotspot/resident_memory.h"
#include "hotspot/side_file.h"

namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      abort();
    ours = heapprofd::ScopedFd(ends[0]);
    theirs = heapprofd::ScopedFd(ends[1]);
  }

  heapprofd::ScopedFd ours;
  heapprofd::ScopedFd theirs;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Pair waits;  // for us, until we are done
  const heapprofd::Sender sender(std::move(waits.ours));
  Pair machine;
  send(machine.theirs.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  machine.theirs.reset();
  const auto answer = heapprofd::ReceiveAnswer(machine.ours.get(), sender);
  if (answer.ok()) {
    heapprofd::HasSideFiles(answer.value());
    heapprofd::UsedHeapIn(answer.value());
    const heapprofd::MachineMemory memory = heapprofd::MachineMemoryIn(answer.value());
    heapprofd::ResidentMemoryIn(answer.value(), memory, {0, 0x50010});
  }
  return 0;
}
