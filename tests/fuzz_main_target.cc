// A fuzz target that ends badly for inputs that only changes of the committed one are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (std::count(data, data + size, 0xff) >= 4 && size > 20)
    exit(puts("found") < 0 ? 2 : 1);
  return 0;
}
