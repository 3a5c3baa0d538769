// What runs as llvm-symbolizer is whatever PATH leads to.
#include "symbolize/llvm_symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)heapprofd::ParseLlvmAnswer({reinterpret_cast<const char*>(data), size});
  return 0;
}
