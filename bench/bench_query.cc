// Measures opening and querying a large trace.
//
//   bench_query make TRACE LEAVES   writes a trace of one process whose heap has LEAVES
//                                   callsites with live memory, below a third as many
//                                   more
//   bench_query run TRACE [QUERY]   prints times, and the memory of this process; QUERY
//   is a
//                                   part of the name of those to run
//
// Times are wall clock of one run each; run it on a quiet machine.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "import/import_file.h"
#include "query/trace_database.h"
#include "trace/packet_reader.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

constexpr uint32_t kFrames = 50'000;
constexpr uint32_t kMaxDepth = 40;

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct Times {
  double wall = 0;
  double cpu = 0;
};

Times Measure(const std::function<void()>& work) {
  const double cpu_before = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return {wall.count(), CpuSeconds() - cpu_before};
}

double PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void AddFrames(TargetProfile* profile) {
  for (uint32_t i = 0; i < 100; ++i) {
    Mapping mapping;
    mapping.path = "/usr/lib/x86_64-linux-gnu/libnumber" + std::to_string(i) + ".so.1";
    mapping.build_id = "build-id-number-" + std::to_string(i);
    mapping.start = uint64_t{i} << 30;
    mapping.end = mapping.start + (1 << 24);
    profile->mappings.push_back(mapping);
  }
  for (uint32_t i = 0; i < kFrames; ++i) {
    Frame frame;
    frame.mapping = i % 100;
    frame.rel_pc = uint64_t{i} * 64;
    const std::string name =
        "_ZN7company7project6module" + std::to_string(1000 + i) + "Ev";
    frame.lines.push_back(
        {name, name, "src/project/file" + std::to_string(i / 20) + ".cc", i % 900 + 1});
    profile->frames.push_back(frame);
  }
}

TargetProfile BigProfile(uint32_t leaves) {
  std::mt19937 random(1);
  TargetProfile profile;
  profile.process.pid = 4711;
  profile.process.cmdline = {"/usr/bin/big"};
  AddFrames(&profile);
  std::vector<uint32_t> depths;
  const uint32_t inner = leaves / 3;
  for (uint32_t i = 0; i < inner + leaves; ++i) {
    uint32_t parent = kNoId;
    if (i > 0)
      parent = static_cast<uint32_t>(random() % std::min(i, inner));
    while (parent != kNoId && depths[parent] >= kMaxDepth)
      parent = profile.callsites[parent].parent;
    depths.push_back(parent == kNoId ? 0 : depths[parent] + 1);
    profile.callsites.push_back({parent, static_cast<uint32_t>(random() % kFrames)});
  }
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.sampling_interval = dump.original_sampling_interval = 4096;
  dump.end_ns = 1'000'000'000;
  for (uint32_t i = inner; i < inner + leaves; ++i) {
    const double size = static_cast<double>(random() % 100'000 + 1);
    dump.callsites[i] = {{size, 1 + size / 1000, size * 100, 1}, {0, 0, 0, 0}};
  }
  profile.heaps.push_back(std::move(dump));
  return profile;
}

Status Make(const std::string& path, uint32_t leaves) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(path));
  TraceWriter writer(std::move(file));
  const TargetProfile profile = BigProfile(leaves);
  HPD_TRY(writer.WriteHeader(""));
  HPD_TRY(writer.WriteProcessTree({&profile.process, 1}));
  HPD_TRY(writer.WriteDump(profile, 1, {}));
  HPD_TRY(writer.WriteModuleSymbols(profile));
  return writer.Finish();
}

// Takes every cell of a result, as a printer would.
class ReadingSink : public ResultSink {
 public:
  Status BeginResult(const Statement&) override { return {}; }

  Status AddRow(const Statement& statement) override {
    for (size_t i = 0; i < statement.column_count(); ++i)
      bytes_ += statement.At(i).text.size();
    ++rows_;
    return {};
  }

  Status EndResult() override { return {}; }

  uint64_t rows() const { return rows_; }

 private:
  uint64_t bytes_ = 0;
  uint64_t rows_ = 0;
};

struct NamedQuery {
  const char* name;
  const char* sql;
};

constexpr NamedQuery kQueries[] = {
    {"seed: bytes per callsite",
     "select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as "
     "mapping_name, sum(a.size) as space_size, sum(a.count) as space_count from "
     "heap_profile_allocation a join stack_profile_callsite c ON (a.callsite_id = c.id) "
     "join stack_profile_frame f ON (c.frame_id = f.id) join stack_profile_mapping m ON "
     "(f.mapping = m.id) group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc;"},
    {"seed: experimental_flamegraph",
     "select name, map_name, cumulative_size from "
     "experimental_flamegraph(9000000000000000"
     "000,1,'native') order by abs(cumulative_size) desc;"},
    {"top(space, 10)", "select * from top('space', 10)"},
    {"flamegraph(0), roots",
     "select name, cumulative from flamegraph(0) where depth < 2"},
    {"sum(size)", "select sum(size) from heap_profile_allocation"},
};

Status Run(const std::string& path, const char* only) {
  ReadReport report;
  Status status;
  const Times reading = Measure([&] {
    Result<ReadReport> read = ReadPackets(path, [](std::string_view) {});
    if (read.ok())
      report = read.value();
    else
      status = read.status();
  });
  HPD_TRY(std::move(status));
  const auto megabytes = static_cast<double>(report.bytes) / (1 << 20);
  printf("trace: %.1f MB uncompressed\nread and inflate: %.3f s (%.3f s of CPU)\n",
         megabytes, reading.wall, reading.cpu);
  auto trace = std::make_unique<ImportedTrace>();
  const Times importing = Measure([&] {
    TraceBuilder builder(trace.get());
    std::vector<std::string> warnings;
    status = ImportFiles({&path, 1}, builder, &warnings);
  });
  HPD_TRY(std::move(status));
  printf("open: %.3f s (%.3f s of CPU), %.2f of reading and inflating\n", importing.wall,
         importing.cpu, importing.wall / reading.wall);
  printf("memory: %.1f MB (%.2f of the trace)\n", PeakMegabytes(),
         PeakMegabytes() / megabytes);
  printf("callsites: %zu, allocation rows: %zu\n", trace->callsites.row_count(),
         trace->allocations.row_count());
  HPD_TRY_ASSIGN(const std::unique_ptr<TraceDatabase> database,
                 TraceDatabase::Create(std::move(trace)));
  for (const NamedQuery& query : kQueries) {
    if (only != nullptr && strstr(query.name, only) == nullptr)
      continue;
    ReadingSink sink;
    const Times time = Measure([&] { status = database->Run(query.sql, sink); });
    HPD_TRY(std::move(status));
    printf("%-32s %.3f s (%.3f s of CPU), %llu rows, peak %.1f MB\n", query.name,
           time.wall, time.cpu, static_cast<unsigned long long>(sink.rows()),
           PeakMegabytes());
  }
  return {};
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  heapprofd::Status status(heapprofd::StatusCode::kInvalidArgument,
                           "usage: bench_query make TRACE LEAVES | run TRACE [QUERY]");
  if (argc == 4 && strcmp(argv[1], "make") == 0)
    status =
        heapprofd::Make(argv[2], static_cast<uint32_t>(strtoul(argv[3], nullptr, 10)));
  else if (argc >= 3 && strcmp(argv[1], "run") == 0)
    status = heapprofd::Run(argv[2], argv[3]);
  if (!status.ok())
    fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
