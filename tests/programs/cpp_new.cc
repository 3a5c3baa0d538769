// Every form of operator new and delete: 200 blocks each of 4000 bytes kept by
// `plain_new`, `array_new`, `nothrow_new` and `aligned_new`; as many more are freed by
// the matching operator delete. Between them one that fails and throws; 200 blocks of
// 4000 bytes are then kept further down the stack (`after_throw`).
#include <cstdio>
#include <cstdlib>
#include <new>

#define FORMS(name, allocate, release)                \
  extern "C" __attribute__((noinline)) void* name() { \
    void* volatile block = allocate;                  \
    return block;                                     \
  }                                                   \
  static void Run_##name() {                          \
    for (int i = 0; i < 400; ++i) {                   \
      void* block = name();                           \
      if (i % 2 != 0)                                 \
        release;                                      \
    }                                                 \
  }

FORMS(plain_new, operator new(4000), operator delete(block))
FORMS(array_new, operator new[](4000), operator delete[](block))
FORMS(nothrow_new, operator new(4000, std::nothrow), operator delete(block, std::nothrow))
FORMS(aligned_new,
      operator new(4000, std::align_val_t(64)),
      operator delete(block, std::align_val_t(64)))
FORMS(sized_delete, operator new(4000), operator delete (block, size_t{4000}))

extern "C" __attribute__((noinline)) void* after_throw(int depth) {
  void* volatile block = depth > 0 ? after_throw(depth - 1) : operator new(4000);
  return block;
}

int main() {
  Run_plain_new();
  Run_array_new();
  Run_nothrow_new();
  Run_aligned_new();
  Run_sized_delete();
  try {
    void* volatile never = operator new(static_cast<size_t>(-1) / 2);
    operator delete(never);
    return 1;
  } catch (const std::bad_alloc&) {
  }
  for (int i = 0; i < 200; ++i)
    after_throw(10);
  if (operator new(static_cast<size_t>(-1) / 2, std::nothrow) != nullptr)
    return 1;
  puts("cpp_new ok");
  return 0;
}
