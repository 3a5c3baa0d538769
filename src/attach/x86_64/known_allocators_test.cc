// Plans for every function of the allocators that are installed here, from their files:
// the first byte is never replaced, which belongs to the kernel's probes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "attach/entry/hook_contract.h"
#include "attach/prologue.h"
#include "base/scoped_fd.h"
#include "unwind/elf_functions.h"

namespace heapprofd {
namespace {

constexpr std::array<const char*, 16> kAllocators = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-gnu/libjemalloc.so.2",
    "/lib/x86_64-linux-gnu/libtcmalloc.so.4",
    "/lib/x86_64-linux-gnu/libtcmalloc_and_profiler.so.4",
    "/lib/x86_64-linux-gnu/libtcmalloc_debug.so.4",
    "/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
    "/lib/x86_64-linux-gnu/libtcmalloc_minimal_debug.so.4",
    "/lib/x86_64-linux-gnu/libmimalloc.so.2.0",
    "/lib/x86_64-linux-gnu/libtbbmalloc_proxy.so.2",
    "/lib/x86_64-linux-gnu/libasan.so.8",
    "/lib/x86_64-linux-gnu/libtsan.so.2",
    "/lib/x86_64-linux-gnu/liblsan.so.0",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/x86_64-linux-musl/libc.so",
    "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.asan-x86_64.so",
    "/lib/x86_64-linux-gnu/libhoard.so",
};

Hook HookAt(size_t index) {
  return static_cast<Hook>(index);
}

bool IsHookName(std::string_view name) {
  for (size_t i = 0; i < kHookCount; ++i) {
    if (NameOf(HookAt(i)) == name)
      return true;
  }
  return false;
}

std::vector<uint8_t> CodeOf(int fd,
                            const ElfContents& contents,
                            const ElfSymbol& symbol) {
  constexpr size_t kLongest = 4096;
  for (const CodeSegment& segment : contents.code.all()) {
    const uint64_t offset = symbol.address - segment.load_bias();
    if (!segment.Holds(offset))
      continue;
    std::vector<uint8_t> code(
        std::min<uint64_t>(symbol.size != 0 ? symbol.size : kLongest, kLongest));
    const ssize_t got = pread(fd, code.data(), code.size(), static_cast<off_t>(offset));
    code.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return code;
  }
  return {};
}

// What is wrong with the plan for a function; "": nothing.
std::string FaultOf(const std::vector<uint8_t>& code, uint64_t address, Hook hook) {
  const Result<KeptBegin> kept = KeepBegin(code, ContractOf(hook));
  if (!kept.ok())
    return kept.status().message();
  constexpr uint64_t kFar = uint64_t{64} << 20;  // bytes, of the gate
  const Result<MovedPrologue> moved =
      MovePrologue(code, address, kept.value(), address + kFar);
  if (!moved.ok())
    return moved.status().message();
  if (kept.value().length == 0)
    return "the first byte is replaced";
  if (kept.value().length + moved.value().length > code.size())
    return "bytes behind the function are replaced";
  return "";
}

TEST(KnownAllocatorsTest, EachFunctionKeepsItsFirstByteAndCanBeHooked) {
  size_t functions = 0;
  for (const char* path : kAllocators) {
    const ScopedFd fd(open(path, O_RDONLY | O_CLOEXEC));
    if (!fd.valid())
      continue;
    const ElfContents contents = ReadElf(fd.get(), IsHookName, /*use_full_table=*/false);
    for (size_t i = 0; i < kHookCount; ++i) {
      const auto found = contents.symbols.find(NameOf(HookAt(i)));
      if (HookAt(i) == Hook::kSallocx || found == contents.symbols.end() ||
          !found->second.is_function)
        continue;
      ++functions;
      EXPECT_EQ(FaultOf(CodeOf(fd.get(), contents, found->second), found->second.address,
                        HookAt(i)),
                "")
          << NameOf(HookAt(i)) << " of " << path;
    }
  }
  EXPECT_GE(functions, 11u);  // libc's
}

// The program that the linker has marked has none near the functions that are hooked.
TEST(KnownAllocatorsTest, NothingElseBeginsInTheBytesThatAreReplaced) {
  const ScopedFd fd(open(kAllocators[0], O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  const ElfContents contents = ReadElf(fd.get(), IsHookName, /*use_full_table=*/false);
  std::vector<uint64_t> offsets;
  for (const auto& [name, symbol] : contents.symbols) {
    for (const CodeSegment& segment : contents.code.all())
      offsets.push_back(symbol.address - segment.load_bias());
  }
  constexpr uint64_t kReplaced = 15;
  EXPECT_TRUE(ReadPlaces(fd.get(), offsets, kReplaced).empty());
  const std::vector<uint64_t> before = {offsets[0] - 1};
  EXPECT_EQ(ReadPlaces(fd.get(), before, kReplaced).empty(), false);
}

}  // namespace
}  // namespace heapprofd
