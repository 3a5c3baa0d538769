// How operator new and delete keep the rules of C++ ([new.delete], [support.dynamic]):
// every form, handlers, exceptions, objects of threads and of the program. Usage:
// new_rules ROUNDS: prints "ready", and for each line of standard input, so many at most,
// how the rules are kept, then "done". What fails comes last: mimalloc's ends the
// program.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "rules.h"

extern "C" void holds(const char* rule, int is_kept) {
  dprintf(STDOUT_FILENO, "%s: %d\n", rule, is_kept != 0);
}

namespace {

volatile size_t g_nothing = 0;
volatile size_t g_huge = size_t{PTRDIFF_MAX} + 1;
volatile size_t g_many = SIZE_MAX / 4;

bool IsAligned(const void* block, size_t alignment) {
  return block != nullptr && reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

// Says in its destructor whether one can still allocate.
struct Farewell {
  explicit Farewell(const char* text) : text(text), kept(new std::string(1000, 'x')) {}

  ~Farewell() {
    const std::vector<std::string> strings(10, std::string(100, 'y'));
    holds(text, kept->size() == 1000 && strings.back().size() == 100);
  }

  const char* text;
  std::unique_ptr<std::string> kept;
};

Farewell g_static("static objects allocate when they end");
thread_local Farewell t_local("objects of threads allocate when they end");

struct alignas(256) Wide {
  char bytes[300];
};

void Blocks() {
  void* one = operator new(g_nothing);
  void* other = operator new(g_nothing);
  holds("new of nothing gives a block of its own", one != nullptr && one != other);
  operator delete(one);
  operator delete(other);
  operator delete(nullptr);
  operator delete[](nullptr);
  operator delete(nullptr, std::align_val_t(64));
  bool is_kept = true;
  for (size_t size = 1; size < 300000; size = size * 3 + 1) {
    void* blocks[] =
        {operator new(size), operator new[](size), operator new(size, std::nothrow),
                                                   operator new[](size, std::nothrow)};
    for (void* block : blocks)
      is_kept &= IsAligned(block, size < 16 ? 8 : __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    operator delete(blocks[0], size);
    operator delete[](blocks[1], size);
    operator delete(blocks[2], std::nothrow);
    operator delete[](blocks[3], std::nothrow);
  }
  holds("every form gives a block, and takes it back", is_kept);
  is_kept = true;
  for (size_t bytes = 16; bytes <= 1 << 16; bytes *= 2) {
    const std::align_val_t alignment{bytes};
    void* blocks[] = {operator new(100, alignment), operator new[](100, alignment),
                                                    operator new(100, alignment,
                                                                 std::nothrow)};
    for (void* block : blocks)
      is_kept &= IsAligned(block, bytes);
    operator delete(blocks[0], 100, alignment);
    operator delete[](blocks[1], alignment);
    operator delete(blocks[2], alignment, std::nothrow);
  }
  holds("blocks are aligned as asked for", is_kept);
  const auto wide = std::make_unique<Wide>();
  const auto several = std::make_unique<Wide[]>(3);
  holds("objects are, too", IsAligned(wide.get(), 256) && IsAligned(&several[1], 256));
}

// The program's own operators of a class stand before all others.
struct Own {
  static void* operator new(size_t size) {
    ++calls;
    return malloc(size);
  }

  static void operator delete(void* block) {
    ++calls;
    free(block);
  }

  static inline int calls = 0;
};

void Classes() {
  Own::calls = 0;
  delete new Own;
  holds("a class has its own operators", Own::calls == 2);
  try {
    struct Thrower {
      Thrower() { throw 7; }

      std::string text = std::string(1000, 'z');
    };

    delete new Thrower;
    holds("constructors throw through new", false);
  } catch (int value) {
    holds("constructors throw through new", value == 7);
  }
}

void Threads() {
  std::thread([] { t_local.text = "objects of threads allocate when they end"; }).join();
}

int g_handled = 0;

void GiveUpAtThird() {
  if (++g_handled == 3)
    std::set_new_handler(nullptr);
}

struct OutOfOwn : std::bad_alloc {};

void ThrowOwn() {
  throw OutOfOwn();
}

template <typename Allocate>
bool ThrowsBadAlloc(Allocate allocate) {
  try {
    void* volatile block = allocate();
    static_cast<void>(block);
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

void Failures() {
  holds("a length that overflows is a bad one",
        ThrowsBadAlloc([] { return new int[g_many * 2]; }));
  holds("nothrow gives nothing", operator new(g_huge, std::nothrow) ==
                                     nullptr&& operator new[](g_huge, std::nothrow) ==
                                     nullptr);
  holds("new throws", ThrowsBadAlloc([] { return operator new(g_huge); }) &&
                          ThrowsBadAlloc([] { return operator new[](g_huge); }));
  holds("new with an alignment throws",
        ThrowsBadAlloc([] { return operator new(g_huge, std::align_val_t(64)); }));
  g_handled = 0;
  std::set_new_handler(GiveUpAtThird);
  holds("the handler is asked until it gives up",
        ThrowsBadAlloc([] { return operator new(g_huge); }) && g_handled == 3);
  std::set_new_handler(ThrowOwn);
  bool is_passed_on = false;
  try {
    operator delete(operator new(g_huge));
  } catch (const OutOfOwn&) {
    is_passed_on = true;
  }
  std::set_new_handler(nullptr);
  holds("what the handler throws comes through", is_passed_on);
}

}  // namespace

int main(int argc, char** argv) {
  static char buffer[16];
  setvbuf(stdin, buffer, _IOFBF, sizeof(buffer));
  dprintf(STDOUT_FILENO, "ready\n");
  for (int rounds = argc > 1 ? atoi(argv[1]) : 0; rounds > 0; --rounds) {
    if (getchar() == EOF)
      break;
    Blocks();
    Classes();
    Threads();
    Failures();
    dprintf(STDOUT_FILENO, "done\n");
  }
  return 0;
}
