// Symbolizes addresses of one ELF file as the recorder does, without its disk cache, for
// comparison with other tools.
//
// bench_symbolize FILE < ADDRESSES (hexadecimal, one per line): for each address the
// linker's name of the function and file:line, innermost first, then an empty line.
#include <fcntl.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "symbolize/elf_identity.h"
#include "symbolize/symbolize_profile.h"

using namespace heapprofd;

namespace {

std::string ReadAll(FILE* file) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), file)) > 0;)
    text.append(buffer.data(), size);
  return text;
}

void Print(std::string_view text) {
  fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  const ScopedFd file(open(argv[1], O_RDONLY | O_CLOEXEC));
  const std::optional<ElfIdentity> identity = IdentifyElf(file.get());
  if (!identity)
    return 1;
  TargetProfile profile;
  profile.mappings.emplace_back();
  profile.mappings[0].path = argv[1];
  profile.mappings[0].build_id = identity->build_id;
  const std::string questions = ReadAll(stdin);
  const char* at = questions.c_str();
  for (char* end = nullptr;; at = end) {
    const uint64_t address = strtoull(at, &end, 16);
    if (end == at)
      break;
    profile.frames.push_back({.mapping = 0, .rel_pc = address, .lines = {}});
  }
  const ProfileToSymbolize input{
      .code = CodeOf(profile),
      .open_module = [&](const Mapping&) { return ScopedFd(dup(file.get())); }};
  SymbolizeProfiles({&input, 1}, SymbolizeOptions());
  for (const Frame& frame : profile.frames) {
    for (const SourceLine& line : frame.lines) {
      Print(line.system_name.empty() ? line.function : line.system_name);
      Print("\n");
      Print(line.file);
      Print(":" + std::to_string(line.line) + "\n");
    }
    Print("\n");
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
