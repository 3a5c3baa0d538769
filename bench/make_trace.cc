// Writes a trace of about the given size, for tools/bench: one process whose stacks are
// as deep and as varied as those of a large C++ program. Usage: make_trace PATH MIB
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

constexpr uint32_t kModules = 60;
constexpr uint32_t kFrames = 60'000;
constexpr uint32_t kMeanDepth = 25;
constexpr size_t kRecent = 20;

TargetProfile MakeProfile(uint32_t callsites) {
  std::mt19937 engine(1);  // the same trace in every run
  const auto random = [&](uint32_t limit) {
    return static_cast<uint32_t>(engine() % limit);
  };
  TargetProfile profile;
  profile.process.pid = 7;
  profile.process.start_ns = 1;
  profile.process.cmdline = {"/usr/bin/large", "--job"};
  for (uint32_t i = 0; i < kModules; ++i) {
    Mapping& mapping = profile.mappings.emplace_back();
    mapping.start = 0x7f0000000000 + uint64_t{i} * 0x10000000;
    mapping.end = mapping.start + 0x8000000;
    mapping.path = "/usr/lib/large/module" + std::to_string(i) + ".so";
    mapping.build_id = std::string(20, static_cast<char>(i));
  }
  for (uint32_t i = 0; i < kFrames; ++i) {
    const std::string name = "Function" + std::to_string(i / 3);
    profile.frames.push_back(
        {.mapping = i % kModules,
         .rel_pc = random(0x8000000),
         .lines = {{"large::part" + std::to_string(i % 500) + "::" + name + "(int)",
                    "_ZN5large7part" + std::to_string(100 + i % 500) +
                        std::to_string(name.size()) + name + "Ei",
                    "/src/large/part" + std::to_string(i % 2000) + ".cc", i % 3000}}});
  }
  HeapDump& dump = profile.heaps.emplace_back();
  dump.heap_name = kMallocHeapName;
  dump.sampling_interval = dump.original_sampling_interval = 4096;
  dump.start_ns = 1;
  dump.end_ns = 1'000'000'000;
  // A stack leaves one of the latest somewhere and goes its own way from there.
  std::vector<CallsiteId> leaves;
  for (uint32_t i = 0; i < callsites; ++i) {
    CallsiteId at = kNoId;
    uint32_t depth = 0;
    if (!leaves.empty()) {
      const auto recent = static_cast<uint32_t>(std::min(leaves.size(), kRecent));
      at = leaves[leaves.size() - 1 - random(recent)];
      for (uint32_t up = random(kMeanDepth); up > 0 && at != kNoId; --up)
        at = profile.callsites[at].parent;
      for (CallsiteId node = at; node != kNoId; node = profile.callsites[node].parent)
        ++depth;
    }
    for (; depth < kMeanDepth || random(3) != 0; ++depth) {
      profile.callsites.push_back({.parent = at, .frame = random(kFrames)});
      at = static_cast<CallsiteId>(profile.callsites.size() - 1);
    }
    leaves.push_back(at);
    CallsiteTotals& totals = dump.callsites[at];
    totals.allocated = {1000.0 + random(100'000), 1.0 + random(100), 1e6, 10};
    totals.freed = {500, 1, 1e5, 1};
  }
  return profile;
}

Status Write(const std::string& path, uint32_t callsites) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(path));
  TraceWriter writer(std::move(file));
  const TargetProfile profile = MakeProfile(callsites);
  HPD_TRY(writer.WriteHeader(""));
  HPD_TRY(writer.WriteProcessTree({&profile.process, 1}));
  HPD_TRY(writer.WriteDump(profile, 0, {}));
  HPD_TRY(writer.WriteModuleSymbols(profile, NamedModules::kWithBuildId));
  return writer.Finish();
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  constexpr uint32_t kCallsitesPerMib = 5600;
  if (argc != 3)
    return 2;
  const auto mib = static_cast<uint32_t>(atoi(argv[2]));
  const heapprofd::Status status = heapprofd::Write(argv[1], mib * kCallsitesPerMib);
  if (!status.ok())
    fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
