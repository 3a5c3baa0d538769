// traceconv bundle: a trace with everything that is needed to read it, as a tar archive
// with trace.perfetto, symbols.pb and deobfuscation.pb. Perfetto's tools open it as ours
// do.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/convert/traceconv.h"
#include "cli/convert/traceconv_packets.h"
#include "cli/load_trace.h"
#include "cli/output_file.h"
#include "import/perfetto/packet_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kBlock = 512;

// Header of a member in the ustar form.
std::string TarHeader(const std::string& name, uint64_t size) {
  struct Field {
    size_t offset;
    std::string text;
  };

  std::array<char, 12> digits{};
  snprintf(digits.data(), digits.size(), "%011llo",
           static_cast<unsigned long long>(size));
  constexpr size_t kChecksumAt = 148;
  const Field fields[] = {
      {0, name},
      {100, "0000600"},
      {108, "0000000"},
      {116, "0000000"},
      {124, digits.data()},
      {136, "00000000000"},
      {kChecksumAt, "        "},
      {156, "0"},
      {257, std::string("ustar\0"
                        "00",
                        8)},
  };
  std::string header(kBlock, '\0');
  for (const Field& field : fields)
    header.replace(field.offset, field.text.size(), field.text);
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  std::array<char, 8> checksum{};
  snprintf(checksum.data(), checksum.size(), "%06o", sum);
  header.replace(kChecksumAt, 7, std::string(checksum.data(), 7));
  return header;
}

std::string Padding(uint64_t size) {
  return std::string((kBlock - size % kBlock) % kBlock, '\0');
}

Status AddMember(OutputFile& output, const std::string& name, const std::string& bytes) {
  if (bytes.empty())
    return {};
  HPD_TRY(output.Write(TarHeader(name, bytes.size())));
  HPD_TRY(output.Write(bytes));
  return output.Write(Padding(bytes.size()));
}

Status AddTrace(OutputFile& output, const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error)
    return Status(StatusCode::kIo, "cannot read trace " + path + ": " + error.message());
  HPD_TRY_ASSIGN(std::unique_ptr<FileSource> file, FileSource::Open(path));
  HPD_TRY(output.Write(TarHeader("trace.perfetto", size)));
  std::string buffer(size_t{1} << 20, '\0');
  PrefixedSource bounded("", file.get(), size);
  uint64_t done = 0;
  while (done < size) {
    HPD_TRY_ASSIGN(const size_t count, bounded.Read(buffer));
    if (count == 0)
      return Status(StatusCode::kIo, "cannot read trace " + path + ": it became shorter");
    HPD_TRY(output.Write(std::string_view(buffer).substr(0, count)));
    done += count;
  }
  return output.Write(Padding(size));
}

// Where symbols usually are, of those that exist.
std::vector<std::string> UsualSymbolPaths() {
  std::vector<std::string> paths = {"/usr/lib/debug", "."};
  if (const char* home = getenv("HOME"); home != nullptr)
    paths.push_back(std::string(home) + "/.debug");
  if (const char* product = getenv("ANDROID_PRODUCT_OUT"); product != nullptr)
    paths.push_back(std::string(product) + "/symbols");
  std::erase_if(paths, [](const std::string& path) {
    std::error_code error;
    return !std::filesystem::is_directory(path == "." ? "./.build-id" : path, error);
  });
  return paths;
}

}  // namespace

Status ConvertToBundle(const TraceconvOptions& options) {
  if (options.input == "-" || options.output == "-")
    return Status(StatusCode::kInvalidArgument,
                  "cannot make a bundle: it needs an input and an output file; for "
                  "example: traceconv bundle raw-trace trace.tar");
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  HPD_TRY(LoadTrace("traceconv", options.input, builder));
  TraceconvOptions with_places = options;
  if (options.auto_symbol_paths) {
    for (std::string& path : UsualSymbolPaths())
      with_places.symbol_paths.push_back(std::move(path));
  }
  HPD_TRY_ASSIGN(const std::string symbols, SymbolPackets(with_places, trace));
  HPD_TRY_ASSIGN(const std::string mappings, DeobfuscationPackets(options));
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  HPD_TRY(AddTrace(output, PathOfTrace(options.input)));
  HPD_TRY(AddMember(output, "symbols.pb", symbols));
  HPD_TRY(AddMember(output, "deobfuscation.pb", mappings));
  HPD_TRY(output.Write(std::string(2 * kBlock, '\0')));
  return output.Finish();
}

}  // namespace heapprofd
