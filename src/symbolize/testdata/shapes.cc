// Test program: a known chain of inlined calls (main's Draw <- lambda <- Outer <- Grow), a C function, an
// assembler function without size and one with, and a static function that no dynamic symbol names.
#include "shapes.h"

#include <cstdio>

extern "C" void asm_sized();
extern "C" void asm_unsized();

asm(R"(
  .text
  .p2align 4
  .globl asm_unsized
  .type asm_unsized, @function
asm_unsized:
  nop
  nop
  ret
  .p2align 4
  .globl asm_sized
  .globl __asm_sized_alias
  .type asm_sized, @function
  .type __asm_sized_alias, @function
asm_sized:
__asm_sized_alias:
  nop
  ret
  .size asm_sized, . - asm_sized
  .size __asm_sized_alias, . - __asm_sized_alias
)");

namespace shapes {

[[gnu::always_inline]] inline void* Outer(Buffer<long>& buffer, long count) {
  void* first = buffer.Grow(count);  // line 35
  return first;
}

__attribute__((noinline)) void* Draw(long count) {
  Buffer<long> buffer;
  auto make = [&](long n) __attribute__((always_inline)) {
    return Outer(buffer, n + 1);  // line 42
  };
  void* result = make(count);  // line 44
  asm volatile("" : "+r"(result));  // no tail call
  return result;
}

}  // namespace shapes

static __attribute__((noinline)) void* HiddenHelper(long count) {
  void* result = shapes::Draw(count);  // line 52
  asm volatile("" : "+r"(result));
  return result;
}

extern "C" void* plain_c_name(long count) {
  void* result = HiddenHelper(count);  // line 58
  asm volatile("" : "+r"(result));
  return result;
}

int main(int argc, char**) {
  asm_sized();
  asm_unsized();
  void* result = plain_c_name(argc);
  puts(result == nullptr ? "none" : "some");
  free(result);
}
