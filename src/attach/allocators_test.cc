// Why there is nothing to hook, by what was found of a program's code.
#include "attach/allocators.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(NoAllocatorReasonTest, WhatIsNotKnownIsSaidBeforeWhatIsMissing) {
  ProcessCode code;
  code.unopened = {"/mnt/libx.so"};
  EXPECT_EQ(NoAllocatorReason(code),
            "/mnt/libx.so could not be opened in time, so it is not known what it "
            "defines; look at its file system, or try again");
}

TEST(NoAllocatorReasonTest, EachKindOfProgramHasItsOwn) {
  ProcessCode code;
  EXPECT_EQ(NoAllocatorReason(code),
            "its program is not a 64-bit x86 one; profile the 64-bit build");
  code.is_64_bit = true;
  EXPECT_EQ(NoAllocatorReason(code), "none of its modules defines malloc and free");
  code.is_stripped = true;
  EXPECT_EQ(NoAllocatorReason(code),
            "its allocator is linked statically and the symbols are stripped; profile a "
            "build with symbols");
  code.is_go = true;
  EXPECT_EQ(NoAllocatorReason(code),
            "it is a Go program, whose allocator cannot be hooked; use Go's own pprof");
}

}  // namespace
}  // namespace heapprofd
