// When functions that allocate may be called, and what they may not do: threads, their
// ends, forks, signals, small stacks, cancellation.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "rules.h"

enum { kThreads = 4, kForks = 20, kPatienceS = 60 };

static void allocate_some(void) {
  for (size_t size = 1; size < 100000; size = size * 2 + 1) {
    char* volatile block = malloc(size);
    block[size - 1] = 1;
    free(realloc(block, size + 100));
  }
}

static void* allocator_thread(void* stop) {
  while (!atomic_load((atomic_int*)stop))
    allocate_some();
  return NULL;
}

static void* short_thread(void* unused) {
  allocate_some();
  return unused;
}

// A child that hangs is ended by the alarm, and seen by its status.
static int child_succeeds(void (*work)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceS);
    work();
    _exit(7);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static void start_thread_in_child(void) {
  pthread_t thread;
  allocate_some();
  if (pthread_create(&thread, NULL, short_thread, NULL) != 0)
    _exit(1);
  pthread_join(thread, NULL);
}

static void forks_among_threads(void) {
  atomic_int stop = 0;
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i)
    pthread_create(&threads[i], NULL, allocator_thread, &stop);
  int is_kept = 1;
  for (int i = 0; i < kForks; ++i)
    is_kept &= child_succeeds(i % 2 == 0 ? allocate_some : start_thread_in_child);
  atomic_store(&stop, 1);
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  holds("a child of many threads allocates", is_kept);
}

static pthread_key_t g_key;
static atomic_int g_destroyed;

static void destroy(void* block) {
  const int round = *(int*)block;
  free(block);
  allocate_some();
  atomic_fetch_add(&g_destroyed, 1);
  if (round + 1 < PTHREAD_DESTRUCTOR_ITERATIONS) {
    int* next = malloc(sizeof(int));
    *next = round + 1;
    pthread_setspecific(g_key, next);
  }
}

static void* thread_with_destructors(void* unused) {
  pthread_setspecific(g_key, calloc(1, sizeof(int)));
  return unused;
}

static void ends_of_threads(void) {
  pthread_key_create(&g_key, destroy);
  g_destroyed = 0;
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, thread_with_destructors, NULL);
    pthread_join(thread, NULL);
  }
  pthread_key_delete(g_key);
  holds("destructors of threads allocate, to the last one",
        g_destroyed == 10 * PTHREAD_DESTRUCTOR_ITERATIONS);
}

static void* free_of_others(void* blocks) {
  void** block = blocks;
  free(block[0]);
  block[1] = realloc(block[1], 100000);
  return NULL;
}

static void blocks_of_other_threads(void) {
  char* blocks[2] = {malloc(100), malloc(100)};
  memset(blocks[1], 5, 100);
  pthread_t thread;
  pthread_create(&thread, NULL, free_of_others, blocks);
  pthread_join(thread, NULL);
  holds("any thread may free and grow a block", blocks[1][99] == 5);
  free(blocks[1]);
}

static atomic_int g_signals;

static void allocate_in_handler(int signal) {
  (void)signal;
  const int error = errno;
  allocate_some();
  errno = error;
  atomic_fetch_add(&g_signals, 1);
}

static void only_count(int signal) {
  (void)signal;
  atomic_fetch_add(&g_signals, 1);
}

static void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, NULL);
}

static void signal_handlers(void) {
  // A handler that interrupts nothing of the allocator may use it, on its own stack, too.
  static _Alignas(64) char stack[65536];
  const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
  const stack_t no_stack = {.ss_flags = SS_DISABLE};
  sigaltstack(&own, NULL);
  handle(SIGUSR1, allocate_in_handler, SA_ONSTACK);
  handle(SIGUSR2, allocate_in_handler, 0);
  g_signals = 0;
  for (int i = 0; i < 100; ++i) {
    free(malloc(100));
    raise(i % 2 == 0 ? SIGUSR1 : SIGUSR2);
  }
  holds("handlers allocate", g_signals == 100);
  sigaltstack(&no_stack, NULL);
  handle(SIGUSR1, SIG_DFL, 0);
  handle(SIGUSR2, SIG_DFL, 0);
}

// A thread that sends signals into the allocator, to a handler that does not allocate.
static void* send_signals(void* target) {
  for (int i = 0; i < 2000; ++i)
    pthread_kill(*(pthread_t*)target, SIGUSR1);
  return NULL;
}

static void interruptions(void) {
  handle(SIGUSR1, only_count, SA_RESTART);
  g_signals = 0;
  pthread_t self = pthread_self();
  pthread_t sender;
  pthread_create(&sender, NULL, send_signals, &self);
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  int is_kept = 1;
  for (int i = 0; i < 300; ++i)
    allocate_some();
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  for (int signal = 1; signal < NSIG; ++signal)
    is_kept &= sigismember(&before, signal) == sigismember(&after, signal);
  pthread_join(sender, NULL);
  holds("signals come through", g_signals > 0);
  holds("the mask of signals stays", is_kept);
  handle(SIGUSR1, SIG_DFL, 0);
}

static void small_stacks(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(
      &attributes, PTHREAD_STACK_MIN > 16384 ? (size_t)PTHREAD_STACK_MIN : 16384);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, short_thread, &g_key);
  void* result = NULL;
  if (error == 0)
    pthread_join(thread, &result);
  holds("the smallest stack of a thread is enough", result == &g_key);
  pthread_attr_destroy(&attributes);
}

static atomic_int g_was_not_cancelled;

static void* cancelled_thread(void* unused) {
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_cancel(pthread_self());
  allocate_some();
  g_was_not_cancelled = 1;
  pthread_testcancel();
  return unused;
}

static void cancellation(void) {
  g_was_not_cancelled = 0;
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, cancelled_thread, NULL);
  pthread_join(thread, &result);
  holds("no function of the family is a point of cancellation",
        g_was_not_cancelled && result == PTHREAD_CANCELED);
}

#ifdef __GLIBC__  // musl has no contexts
static ucontext_t g_main_context;
static ucontext_t g_coroutine;

static void coroutines(void) {
  enum { kStack = 32768 };

  char* stack =
      mmap(NULL, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = stack;
  g_coroutine.uc_stack.ss_size = kStack;
  g_coroutine.uc_link = &g_main_context;
  makecontext(&g_coroutine, allocate_some, 0);
  holds("coroutines allocate", swapcontext(&g_main_context, &g_coroutine) == 0);
  munmap(stack, kStack);
}
#else
static void coroutines(void) {}
#endif

void life_rules(void) {
  forks_among_threads();
  ends_of_threads();
  blocks_of_other_threads();
  signal_handlers();
  interruptions();
  small_stacks();
  cancellation();
  coroutines();
}
