#include "symbolize/symbol_index.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>

#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

class SymbolIndexTest : public testing::Test {
 protected:
  const TestProgram program_{"shapes_no_debug"};
  const std::unique_ptr<ElfModule> module_ = ElfModule::Open(program_.file()).value();
  const SymbolIndex index_{module_->images()};
};

TEST_F(SymbolIndexTest, ASymbolNamesItsFirstToItsLastByte) {
  const SymbolRange draw = FindSymbol(program_, "_ZN6shapes4DrawEl");
  EXPECT_EQ(index_.Find(draw.start), "_ZN6shapes4DrawEl");
  EXPECT_EQ(index_.Find(draw.end - 1), "_ZN6shapes4DrawEl");
  EXPECT_NE(index_.Find(draw.end), "_ZN6shapes4DrawEl");
  EXPECT_NE(index_.Find(draw.start - 1), "_ZN6shapes4DrawEl");
}

TEST_F(SymbolIndexTest, ASymbolWithoutSizeReachesToTheNextOne) {
  const uint64_t unsized = FindSymbol(program_, "asm_unsized").start;
  const uint64_t next = FindSymbol(program_, "asm_sized").start;
  ASSERT_EQ(next, unsized + 16);
  EXPECT_EQ(index_.Find(unsized), "asm_unsized");
  EXPECT_EQ(index_.Find(next - 1), "asm_unsized");
}

TEST_F(SymbolIndexTest, OfAliasesTheOneWithFewerUnderscoresIsTaken) {
  EXPECT_EQ(index_.Find(FindSymbol(program_, "__asm_sized_alias").start), "asm_sized");
}

TEST_F(SymbolIndexTest, AddressesOutsideOfCodeAreUnknown) {
  EXPECT_EQ(index_.Find(0), "");
  EXPECT_EQ(index_.Find(UINT64_MAX), "");
}

// malloc, __libc_malloc and others are the same function in glibc.
TEST(SymbolIndexOfLibcTest, MallocIsCalledMalloc) {
  Dl_info location;
  ASSERT_NE(dladdr(std::bit_cast<void*>(&gnu_get_libc_version), &location), 0);
  const TestProgram libc(location.dli_fname);
  const auto module = ElfModule::Open(libc.file());
  ASSERT_TRUE(module.ok());
  const SymbolIndex index(module.value()->images());
  size_t named_malloc = 0;
  for (uint64_t address = 0; address < 0x200000; address += 16) {
    named_malloc += index.Find(address) == "malloc" ? 1u : 0u;
    EXPECT_NE(index.Find(address), "__libc_malloc");
  }
  EXPECT_GT(named_malloc, 0u);
}

}  // namespace
}  // namespace heapprofd
