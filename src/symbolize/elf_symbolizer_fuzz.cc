// ELF and DWARF of a process are whatever it mapped: symbolizes addresses of damaged
// programs.
//
// An input is a list of changes to a real program, as random bytes would seldom be an ELF
// image at all: byte 0 chooses the program, then each four bytes are an offset (24 bits)
// and the new byte there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "symbolize/elf_symbolizer.h"
#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

struct Original {
  std::vector<char> bytes;
  std::string build_id;
  std::vector<uint64_t>
      addresses;  // of functions with inlined calls, and some that nobody knows
};

// `twin`: has the same code, and symbols.
Original ReadProgram(const char* name, const char* twin) {
  const TestProgram program(name);
  std::ifstream in(program.path, std::ios::binary);
  Original original{.bytes = {std::istreambuf_iterator<char>(in), {}},
                    .build_id = program.build_id,
                    .addresses = {0, 1, UINT64_MAX}};
  const SymbolRange draw = FindSymbol(TestProgram(twin), "_ZN6shapes4DrawEl");
  for (uint64_t address = draw.start - 64; address < draw.end + 64; ++address)
    original.addresses.push_back(address);
  return original;
}

const std::vector<Original>& Originals() {
  static const std::vector<Original> kOriginals = {
      ReadProgram("shapes", "shapes"), ReadProgram("shapes_dwarf4", "shapes_dwarf4"),
      ReadProgram("shapes_no_debug", "shapes_no_debug"),
      ReadProgram("shapes_mini", "shapes_no_debug")};
  return kOriginals;
}

void SymbolizeDamaged(std::span<const uint8_t> input) {
  const Original& original = Originals()[input[0] % Originals().size()];
  std::vector<char> bytes = original.bytes;
  for (size_t i = 1; i + 4 <= input.size(); i += 4) {
    const size_t offset =
        size_t{input[i]} | size_t{input[i + 1]} << 8 | size_t{input[i + 2]} << 16;
    bytes[offset % bytes.size()] = static_cast<char>(input[i + 3]);
  }
  const ScopedFd fd(memfd_create("fuzz", MFD_CLOEXEC));
  HPD_CHECK(write(fd.get(), bytes.data(), bytes.size()) ==
            static_cast<ssize_t>(bytes.size()));
  // No folders are searched: only the input is under test.
  auto symbolizer = ElfSymbolizer::Open(
      {.fd = fd.get(), .path = "/fuzz", .build_id = original.build_id});
  if (symbolizer.ok())
    SymbolizeAddresses(symbolizer.value(), original.addresses);
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0)
    heapprofd::SymbolizeDamaged({data, size});
  return 0;
}
