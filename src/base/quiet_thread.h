// A thread that takes no signals: they are for the one that serves.
#pragma once

#include <pthread.h>

#include <functional>

namespace heapprofd {

// Calls `run` on a new thread, to be joined or detached. False: none can be had.
bool StartQuietThread(std::function<void()> run, pthread_t* thread);

}  // namespace heapprofd
