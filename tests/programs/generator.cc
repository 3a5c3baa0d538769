// For the accuracy study: sizes from 8 bytes to 1 MiB, each from a function of its own,
// all kept. Prints the truth as JSON: {function: [count, bytes]}.
#include <cstdio>
#include <cstdlib>

#define SIZE(bytes, count)                                        \
  extern "C" __attribute__((noinline)) void* allocate_##bytes() { \
    void* volatile block = malloc(bytes);                         \
    return block;                                                 \
  }
// clang-format off
#define SIZES(X) \
  X(8, 20000) X(16, 20000) X(40, 10000) X(100, 10000) X(256, 5000) X(1000, 2000) X(2500, 1000) \
  X(4095, 600) X(4096, 500) X(20000, 100) X(1048576, 3)
// clang-format on
SIZES(SIZE)

int main() {
#define RUN(bytes, count)           \
  for (int i = 0; i < (count); ++i) \
    allocate_##bytes();
  SIZES(RUN)
#define PRINT(bytes, count)                                                     \
  printf("%s\"allocate_%d\": [%d, %ld]", bytes == 8 ? "{" : ", ", bytes, count, \
         long{bytes} * count);
  SIZES(PRINT)
  puts("}");
  return 0;
}
