// Compares random addresses of a C++ library of some size with binutils' addr2line.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "symbolize/demangle.h"
#include "symbolize/elf_symbolizer.h"
#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

constexpr size_t kAddresses = 2000;
constexpr double kMinAgreement = 0.999;

struct Position {
  std::string function;
  std::string file;
  std::string line;

  friend bool operator==(const Position&, const Position&) = default;
};

// Both sides take the names of clones and of the variants of constructors from different
// sources (DWARF or symbols); demangled, they differ only in what follows the name.
std::string NormalFunction(const std::string& function) {
  const std::string text = Demangle(function);
  return text == function && text.find('<') == std::string::npos
             ? text.substr(0, text.find('.'))
             : text.substr(0, text.find(" [clone"));
}

Position Normalize(const std::string& function,
                   const std::string& file,
                   std::string line) {
  line = line.substr(0, line.find(' '));  // "12 (discriminator 3)"
  if (line == "0" || line == "?")
    return {.function = NormalFunction(function), .file = "", .line = "0"};
  return {.function = NormalFunction(function),
          .file = std::filesystem::path(file).filename().string(),
          .line = line};
}

std::vector<Position> Normalize(const std::vector<SourceLine>& lines) {
  std::vector<Position> positions;
  for (const SourceLine& line : lines) {
    positions.push_back(
        Normalize((line.system_name.empty() ? line.function : line.system_name).str(),
                  line.file.str(), std::to_string(line.line)));
  }
  return positions;
}

// One answer per address of the file: after "0x..." come pairs of lines, function and
// file:line.
std::vector<std::vector<Position>> AskAddr2line(const std::string& path,
                                                const std::vector<uint64_t>& addresses) {
  const ScratchDirectory directory;
  const std::string request = directory.path() / "addresses";
  std::ofstream out(request);
  for (const uint64_t address : addresses)
    out << "0x" << std::hex << address << "\n";
  out.close();
  const std::string command =
      std::string(HPD_ADDR2LINE) + " -a -f -i -e '" + path + "' < " + request;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string text;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe.get())) > 0;)
    text.append(buffer, n);

  std::vector<std::vector<Position>> answers;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("0x")) {
      answers.emplace_back();
      continue;
    }
    std::string position;
    std::getline(stream, position);
    const size_t colon = position.rfind(':');
    answers.back().push_back(
        Normalize(line, position.substr(0, colon), position.substr(colon + 1)));
  }
  return answers;
}

// For functions without a linkage name in DWARF addr2line names the innermost one after
// the symbol at the address, although that is the outermost one, and this by its plain
// name.
void UndoSymbolNames(std::vector<Position>& oracle, const std::vector<Position>& ours) {
  if (oracle.size() <= 1 || oracle.size() != ours.size())
    return;
  const std::string& symbol = ours.back().function;
  std::string& outermost = oracle.back().function;
  if (oracle.front().function == symbol)
    oracle.front().function = ours.front().function;
  const std::string plain = outermost.substr(0, outermost.find('<'));
  if (symbol.find(plain) != std::string::npos)
    outermost = symbol;
}

std::vector<uint64_t> RandomAddressesInFunctions(const TestProgram& program) {
  const auto module = ElfModule::Open(program.file());
  const SymbolIndex symbols(module.value()->images());
  const uint64_t size = std::filesystem::file_size(program.path);
  std::mt19937_64 random(20240607);
  std::vector<uint64_t> addresses;
  while (addresses.size() < kAddresses) {
    const uint64_t address = random() % size;
    if (!symbols.Find(address).empty())
      addresses.push_back(address);
  }
  return addresses;
}

std::string ToText(const std::vector<Position>& positions) {
  std::string text;
  for (const Position& position : positions)
    text += "  " + position.function + " " + position.file + ":" + position.line + "\n";
  return text;
}

TEST(Addr2lineTest, FunctionsAndLinesOfRandomAddressesAgree) {
  if (std::string(HPD_ADDR2LINE).ends_with("NOTFOUND"))
    GTEST_SKIP() << "addr2line is not installed";
  const TestProgram program("self");
  const std::vector<uint64_t> addresses = RandomAddressesInFunctions(program);
  const auto oracle = AskAddr2line(program.path, addresses);
  ASSERT_EQ(oracle.size(), addresses.size());
  auto symbolizer = ElfSymbolizer::Open(
      program.file(), FindDebugFiles(program.file(), kStandardDebugPath, nullptr));
  ASSERT_TRUE(symbolizer.ok());
  const auto answers = SymbolizeAddresses(symbolizer.value(), addresses);
  size_t agreed = 0;
  std::string differences;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::vector<Position> ours = Normalize(answers[i]);
    std::vector<Position> theirs = oracle[i];
    UndoSymbolNames(theirs, ours);
    agreed += ours == theirs ? 1u : 0u;
    if (ours != theirs)
      differences += "ours:\n" + ToText(ours) + "addr2line:\n" + ToText(theirs);
  }
  printf("%zu of %zu addresses agree\n", agreed, addresses.size());
  EXPECT_GE(static_cast<double>(agreed), kMinAgreement * kAddresses) << differences;
}

}  // namespace
}  // namespace heapprofd
