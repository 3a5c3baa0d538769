// What stops a program that has just been executed at a function of its loader. Two ways:
// a breakpoint of the processor, which costs nothing on the way there, and where there is
// none (some virtual machines never stop at one, and containers may refuse it) a system
// call that the function is made to begin with. Neither harms a program that we leave
// behind by dying.
#pragma once

#include <cstdint>
#include <memory>

#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

// How long a thread that was told to stop may take.
inline constexpr uint64_t kStopNs = 500'000'000;

class StartTrap {
 public:
  StartTrap() = default;
  // The program is as it was without the trap, unless it cannot be stopped any more.
  virtual ~StartTrap() = default;
  StartTrap(const StartTrap&) = delete;
  StartTrap& operator=(const StartTrap&) = delete;

  enum class Stop : uint8_t {
    kForeign,   // not ours: TracedThread::PassOn ends it
    kOnTheWay,  // ours, elsewhere
    kReached,
  };

  // What the thread has stopped for; `status` is of waitpid(2).
  virtual Stop Look(int status) = 0;

  // After a stop that is ours: to the next one.
  virtual void GoOn(Stop stop) = 0;

  // The thread stands in the function, and stays stopped, without the trap.
  virtual void Finish() = 0;
};

enum class TrapKind : uint8_t { kBreakpoint, kCall };

// The one that works here. Found out once, by this thread for itself.
TrapKind BestTrap();

// `thread` is stopped, the only one of its process, and `function`, which does nothing, is
// where it is to stop. Where no breakpoint can be set it is a call all the same.
// kUnavailable: neither can be, and why.
Result<std::unique_ptr<StartTrap>> SetStartTrap(TrapKind kind,
                                                const RemoteProcess& process,
                                                uint64_t function,
                                                TracedThread* thread);

}  // namespace heapprofd
