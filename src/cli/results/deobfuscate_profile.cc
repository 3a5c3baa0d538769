#include "cli/results/deobfuscate_profile.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "cli/convert/traceconv_packets.h"
#include "cli/load_trace.h"

namespace heapprofd {
namespace {

// "a.b.c" in "void a.b.c(int)".
std::string_view QualifiedName(std::string_view function) {
  function = function.substr(0, function.find('('));
  return function.substr(function.rfind(' ') + 1);
}

Status WriteFile(const FilePlace& place,
                 const std::string& bytes,
                 std::ios::openmode mode) {
  std::ofstream file(place.at, std::ios::binary | mode);
  file << bytes;
  file.close();
  return file ? Status() : Status::FromErrno("cannot write " + place.path, errno);
}

}  // namespace

Result<Deobfuscator> DeobfuscatorFromEnvironment() {
  HPD_TRY_ASSIGN(const std::vector<ProguardSource> sources,
                 ProguardSourcesFromEnvironment());
  HPD_TRY_ASSIGN(std::vector<DeobfuscationMap> maps,
                 ReadProguardMaps("heap_profile", sources));
  Deobfuscator deobfuscator;
  for (DeobfuscationMap& map : maps)
    deobfuscator.Add(std::move(map));
  return deobfuscator;
}

Status CheckProguardMaps() {
  HPD_TRY_ASSIGN(const std::vector<ProguardSource> sources,
                 ProguardSourcesFromEnvironment());
  for (const ProguardSource& source : sources) {
    HPD_TRY_ASSIGN([[maybe_unused]] const ProguardMap map, ReadProguardMap(source));
  }
  return {};
}

void DeobfuscateFrames(const Deobfuscator& deobfuscator, const CodeTable& code) {
  if (deobfuscator.empty())
    return;
  for (Frame& frame : code.frames) {
    for (SourceLine& line : frame.lines) {
      const std::string function = line.function.str();
      const Deobfuscator::Answer answer =
          deobfuscator.FindMethod("", QualifiedName(function), 0);
      if (answer.name.empty())
        continue;
      line.function = answer.name;
      line.system_name = "";
    }
  }
}

Status WriteDeobfuscation(const OutputDirectory& directory) {
  HPD_TRY_ASSIGN(const std::string packets, DeobfuscationPackets({}));
  if (packets.empty())
    return {};
  HPD_TRY(WriteFile(directory.Place("deobfuscation-packets"), packets, std::ios::trunc));
  const FilePlace complete = directory.Place("symbolized-trace");
  std::error_code error;
  std::filesystem::remove(complete.at, error);  // it may be another name of the trace
  if (!std::filesystem::copy_file(directory.Place("raw-trace").at, complete.at, error))
    return Status(StatusCode::kIo,
                  "cannot create " + complete.path + ": " + error.message());
  return WriteFile(complete, packets, std::ios::app);
}

}  // namespace heapprofd
