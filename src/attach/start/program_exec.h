// Waiting for a thread to become another program.
#pragma once

#include <cstdint>
#include <functional>

#include "attach/thread/traced_thread.h"

namespace heapprofd {

// kDone and kFailed: the thread is stopped.
enum class AwaitedExec : uint8_t { kDone, kFailed, kTimedOut, kGone };

// For one that TracedThread::SeizeForExec has seized, until its exec has an end.
// `may_wait`: asked again and again. `is_same_image`: whether the process is still what it
// was before.
AwaitedExec AwaitExec(const std::function<bool()>& may_wait,
                      const std::function<bool()>& is_same_image,
                      TracedThread* thread);

}  // namespace heapprofd
