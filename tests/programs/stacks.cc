// Allocations on unusual stacks, 200 blocks of 5000 bytes each, all kept: on_signal_stack
// (a handler on a sigaltstack), on_malloc_fiber and on_mmap_fiber (makecontext),
// in_coroutine (C++20), deep (2000 frames of recursion), in_aligned_frame (a function
// that realigns its stack).
#include <alloca.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <coroutine>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
constexpr int kRounds = 200;
void* volatile keep;
ucontext_t main_context;
ucontext_t fiber_context;
}  // namespace

#define ALLOCATES(name)                              \
  extern "C" __attribute__((noinline)) void name() { \
    keep = malloc(5000);                             \
    asm volatile("" : : : "memory");                 \
  }

ALLOCATES(on_signal_stack)
ALLOCATES(on_malloc_fiber)
ALLOCATES(on_mmap_fiber)
ALLOCATES(in_coroutine)
ALLOCATES(deep)
ALLOCATES(in_aligned_frame)

static void Handler(int) {
  on_signal_stack();
}

static void MallocFiber() {
  for (int i = 0; i < kRounds; ++i)
    on_malloc_fiber();
}

static void MmapFiber() {
  for (int i = 0; i < kRounds; ++i)
    on_mmap_fiber();
}

static void RunFiber(void* stack, size_t size, void (*body)()) {
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = stack;
  fiber_context.uc_stack.ss_size = size;
  fiber_context.uc_link = &main_context;
  makecontext(&fiber_context, body, 0);
  swapcontext(&main_context, &fiber_context);
}

struct Task {
  struct promise_type {
    Task get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }

    std::suspend_always initial_suspend() noexcept { return {}; }

    std::suspend_always final_suspend() noexcept { return {}; }

    void return_void() {}

    void unhandled_exception() {}
  };

  std::coroutine_handle<promise_type> handle;
};

static Task Coroutine() {
  for (int i = 0; i < kRounds; ++i) {
    in_coroutine();
    co_await std::suspend_always();
  }
}

__attribute__((noinline)) static int Recurse(int depth) {
  if (depth == 0) {
    deep();
    return 1;
  }
  const int result = Recurse(depth - 1);
  asm volatile("" : : : "memory");
  return result + 1;
}

__attribute__((noinline)) static void Aligned(size_t size) {
  alignas(64) volatile char aligned[64];
  auto* dynamic = static_cast<volatile char*>(alloca(size));
  aligned[0] = 1;
  dynamic[0] = aligned[0];
  in_aligned_frame();
  dynamic[size - 1] = 1;
}

int main() {
  stack_t alternate{};
  alternate.ss_size = 16384;
  alternate.ss_sp = malloc(alternate.ss_size);
  sigaltstack(&alternate, nullptr);

  struct sigaction action {};

  action.sa_handler = Handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  const size_t size = 256 * 1024;
  RunFiber(malloc(size), size, MallocFiber);
  void* mapped =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  RunFiber(mapped, size, MmapFiber);
  Task task = Coroutine();
  while (!task.handle.done())
    task.handle.resume();
  task.handle.destroy();
  for (int i = 0; i < kRounds; ++i) {
    raise(SIGUSR1);
    Recurse(2000);
    Aligned(100 + static_cast<size_t>(i));
  }
  puts("stacks ok");
  return 0;
}
