// Finds the mounted file systems that can be watched (mount_list.h), also those of
// containers.
#pragma once

namespace heapprofd {

// Sends a descriptor of each, one a packet, or kMountsLeftOut, and comes back when that
// was all or nobody takes them any more. Walks through directories of others: a process
// of its own must do it, for which nothing waits.
void SendLocalMounts(int socket);

}  // namespace heapprofd
