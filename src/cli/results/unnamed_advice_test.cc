#include "cli/results/unnamed_advice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>

#include <string>

#include "base/scoped_fd.h"
#include "symbolize/elf_identity.h"

namespace heapprofd {
namespace {

// The C library that this test runs with; empty path: there is none.
UnnamedModule OwnLibrary() {
  UnnamedModule library;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::string path = info->dlpi_name;
        if (path.find("/libc.so") != std::string::npos)
          static_cast<UnnamedModule*>(found)->path = path;
        return 0;
      },
      &library);
  const ScopedFd fd(open(library.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.valid()) {
    if (const std::optional<ElfIdentity> identity = IdentifyElf(fd.get()))
      library.build_id = identity->build_id;
  }
  library.reason = NoSymbolsReason::kNoSymbols;
  return library;
}

TEST(FileAdviceTest, PackagesOfTheFirstSixteenFilesAreLookedUp) {
  const UnnamedModule library = OwnLibrary();
  const std::string advice = FileAdvice().Of(library);
  if (advice.find("install ") == std::string::npos)
    GTEST_SKIP() << "no package has the C library here";
  FileAdvice many;
  for (int i = 0; i < 15; ++i) {
    UnnamedModule other = library;
    other.path = "/nowhere/" + std::to_string(i);
    EXPECT_EQ(many.Of(other).find("install "), std::string::npos);
  }
  EXPECT_EQ(many.Of(library), advice) << "the sixteenth";
  UnnamedModule other = library;
  other.build_id += "1";
  EXPECT_EQ(many.Of(other).find("install "), std::string::npos);
  EXPECT_EQ(many.Of(library), advice) << "once more";

  FileAdvice full;
  for (int i = 0; i < 16; ++i) {
    other.path = "/nowhere/" + std::to_string(i);
    full.Of(other);
  }
  EXPECT_EQ(full.Of(library),
            "it has no symbols for them; build it without stripping, or name a directory "
            "with its symbol file in PERFETTO_BINARY_PATH");
}

}  // namespace
}  // namespace heapprofd
