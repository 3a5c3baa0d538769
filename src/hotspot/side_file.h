// Since JDK 22 a virtual machine collects its dump in files beside the pipe first, in its
// own /tmp, and then copies them to the pipe. Nobody can make it stop once it has begun:
// it writes on, removed or not, until it has gone through its heap. So whether there is
// room is looked at before.
#pragma once

#include <cstdint>
#include <string>

#include "hotspot/attach_socket.h"
#include "hotspot/dump_pipe.h"

namespace heapprofd {

// Whether a machine that answers this to "help GC.heap_dump" does so.
bool HasSideFiles(const std::string& help);

// Bytes in use, garbage too, as "GC.heap_info" tells them; 0: it does not.
uint64_t UsedHeapIn(const std::string& heap_info);

// Asks it how large its heap is. An error: its /tmp might become full.
Status CheckRoomBeside(const Attachment& attachment);

// Tells the sender, for whom it is progress, how far they have grown.
class SideProgress {
 public:
  void Look(const DumpPipe& pipe, const Sender& sender);

 private:
  uint64_t bytes_ = 0;
};

}  // namespace heapprofd
