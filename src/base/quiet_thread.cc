#include "base/quiet_thread.h"

#include <signal.h>

#include <memory>
#include <utility>

namespace heapprofd {
namespace {

void* Run(void* argument) {
  const std::unique_ptr<std::function<void()>> run(
      static_cast<std::function<void()>*>(argument));
  (*run)();
  return nullptr;
}

}  // namespace

bool StartQuietThread(std::function<void()> run, pthread_t* thread) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Of a thread's own doing: blocked, they would end the process whatever handles them.
  for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    sigdelset(&all, fault);
  auto argument = std::make_unique<std::function<void()>>(std::move(run));
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool is_started = pthread_create(thread, nullptr, Run, argument.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (is_started)
    static_cast<void>(argument.release());
  return is_started;
}

}  // namespace heapprofd
