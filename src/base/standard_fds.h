// Standard input, output and error of a program that was started without one of them
// (">&-"): what it opened next would be written to in its place.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace heapprofd {

// Once, at the start. The numbers that are free are taken by what cannot be read or
// written to, so that whoever does is told; a program that is started finds them free.
inline void HoldStandardFds() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0)  // the lowest that is free
      open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

}  // namespace heapprofd
