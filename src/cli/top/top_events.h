// What ends the live view's wait for its next look: signals, keys, another size of the
// terminal.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>

#include "base/scoped_fd.h"
#include "cli/record/signals.h"
#include "cli/top/screen.h"

namespace heapprofd {

class TopEvents {
 public:
  // From here on signals arrive by descriptor.
  TopEvents();

  // Readable when there is something more urgent than to draw.
  int wake_fd() const { return wake_.get(); }

  // Until there is something, or for so long. `screen`: nullptr where there is none.
  void Wait(const Screen* screen, int timeout_ms);

  std::optional<signalfd_siginfo> NextSignal() { return signals_.Next(); }

  // The terminal has another size, or another program had it, since this was asked last.
  bool TakeResized();

 private:
  SteeringSignals signals_{SignalSource::kTerminal};
  ScopedFd resized_;  // SIGWINCH and SIGCONT
  ScopedFd urgent_signals_;
  ScopedFd wake_;
};

}  // namespace heapprofd
