// Output for somebody who may not read it: a pipe that is full, a terminal that was
// paused. It is waited for a little; then what is left is thrown away, so that nobody can
// keep a process of ours by not reading.
#pragma once

#include <cstdio>

namespace heapprofd {

// From now on `*stream` writes to the descriptor like that, unbuffered. The descriptor's
// open file is not changed: others may be using it.
// `patience_ms`: for each piece.
void MakePatient(FILE** stream, int fd, int patience_ms = 5000);

}  // namespace heapprofd
