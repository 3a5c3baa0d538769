// Why there is nothing to hook, by what was found of a program's code.
#include "attach/allocators.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "rt/machine.h"

namespace heapprofd {
namespace {

ElfContents ContentsWith(std::initializer_list<const char*> functions) {
  ElfContents contents;
  for (const char* name : functions)
    contents.symbols[name] = {.address = 1, .is_function = true};
  return contents;
}

TEST(WholeAllocatorTest, WhatFreesHasToBeKnown) {
  EXPECT_TRUE(HasWholeAllocator(ContentsWith({"malloc", "free"})));
  EXPECT_FALSE(HasWholeAllocator(ContentsWith({"malloc"})));
  EXPECT_FALSE(HasWholeAllocator(ContentsWith({"free"})));
  EXPECT_TRUE(HasWholeAllocator(ContentsWith({"je_malloc", "je_free"}), "je_"));
  EXPECT_FALSE(HasWholeAllocator(ContentsWith({"malloc", "free"}), "je_"));
}

// A static program on musl that frees nothing has no free.
TEST(WholeAllocatorTest, AMallocThatNeverFreesIsWholeWithoutFree) {
  EXPECT_TRUE(HasWholeAllocator(ContentsWith({"malloc", "__simple_malloc"})));
  EXPECT_FALSE(HasWholeAllocator(ContentsWith({"je_malloc", "__simple_malloc"}), "je_"));
}

TEST(NoAllocatorReasonTest, WhatIsNotKnownIsSaidBeforeWhatIsMissing) {
  ProcessCode code;
  code.unopened = {"/mnt/libx.so"};
  EXPECT_EQ(NoAllocatorReason(code),
            "/mnt/libx.so could not be opened in time, so it is not known what it "
            "defines; look at its file system, or try again");
}

TEST(NoAllocatorReasonTest, EachKindOfProgramHasItsOwn) {
  ProcessCode code;
  EXPECT_EQ(NoAllocatorReason(code), std::string("its program is not built for ") +
                                         rt::kName +
                                         "; profile its 64-bit build for that");
  code.is_64_bit = true;
  EXPECT_EQ(NoAllocatorReason(code), "none of its modules defines malloc and free");
  code.lacks_free = true;
  EXPECT_EQ(NoAllocatorReason(code),
            "its malloc is linked statically without a free that could be found, so what "
            "it frees would be missed; profile a dynamically linked build");
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
