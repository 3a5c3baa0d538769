// Measures opening and querying a large trace, for tools/bench queries. Each run does one
// thing and prints one JSON object: wall and processor seconds of that thing, and the
// most memory that this process has had.
//
//   bench_query make TRACE LEAVES   writes a trace of one process whose heap has LEAVES
//                                   callsites with live memory, and a third as many
//                                   callers
//   bench_query names               the names of the queries, one a line
//   bench_query read TRACE          reads and inflates it, packet by packet, and no more
//   bench_query open TRACE          opens it
//   bench_query query TRACE NAME    opens it and runs a query: decodes, and takes each
//   cell
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "import/import_file.h"
#include "import/perfetto/packet_reader.h"
#include "query/trace_database.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

constexpr uint32_t kFrames = 50'000;
constexpr uint32_t kMaxDepth = 50;

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

// As in recordings of large programs the tree is deep, and what was called in a row is
// close together: a stack leaves the previous one somewhere and goes its own way. A leaf
// with memory ends each such way.
TargetProfile BigProfile(uint32_t callsites, uint32_t leaves) {
  std::mt19937 random(1);
  TargetProfile profile;
  profile.process.pid = 4711;
  profile.process.cmdline = {"/usr/bin/big"};
  AddFrames(&profile);
  std::vector<uint32_t> path;
  std::vector<uint32_t> ends;
  const uint32_t way = callsites / leaves;
  while (profile.callsites.size() + way <= callsites) {
    // Mostly near its end; the way that follows must have room.
    const size_t kept = std::min<size_t>(path.size(), kMaxDepth - way);
    path.resize(kept - std::min(kept, size_t{random() % kMaxDepth} * (random() % 2)));
    for (uint32_t i = 0; i < way; ++i) {
      profile.callsites.push_back({path.empty() ? kNoId : path.back(),
                                   static_cast<uint32_t>(random() % kFrames)});
      path.push_back(static_cast<uint32_t>(profile.callsites.size() - 1));
    }
    ends.push_back(path.back());
  }
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.sampling_interval = dump.original_sampling_interval = 4096;
  dump.end_ns = 1'000'000'000;
  for (const uint32_t end : ends) {
    const double size = static_cast<double>(random() % 100'000 + 1);
    const double count = 1 + size / 1000;
    dump.callsites[end] = {{size * 3, count * 3, size * 300, 3},
                           {size * 2, count * 2, size * 200, 2}};
  }
  profile.heaps.push_back(std::move(dump));
  return profile;
}

Status Make(const std::string& path, uint32_t callsites, uint32_t leaves) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(path));
  TraceWriter writer(std::move(file));
  const TargetProfile profile = BigProfile(callsites, leaves);
  HPD_TRY(writer.WriteHeader(""));
  HPD_TRY(writer.WriteProcessTree({&profile.process, 1}));
  HPD_TRY(writer.WriteDump(profile, 1, {}));
  HPD_TRY(writer.WriteModuleSymbols(profile, NamedModules::kWithBuildId));
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
    {"seed-callsites",
     "select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as "
     "mapping_name, sum(a.size) as space_size, sum(a.count) as space_count from "
     "heap_profile_allocation a join stack_profile_callsite c ON (a.callsite_id = c.id) "
     "join stack_profile_frame f ON (c.frame_id = f.id) join stack_profile_mapping m ON "
     "(f.mapping = m.id) group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc;"},
    {"seed-flamegraph",
     "select name, map_name, cumulative_size from "
     "experimental_flamegraph(9000000000000000000,1,'native') order by "
     "abs(cumulative_size) desc;"},
    {"top", "select * from top('space', 10)"},
    {"flamegraph-roots", "select name, cumulative from flamegraph(0) where depth < 2"},
    {"sum", "select sum(size) from heap_profile_allocation"},
};

void Print(const Times& times, const std::string& more) {
  printf("{\"wall\": %.4f, \"cpu\": %.4f, \"peak_mb\": %.1f%s}\n", times.wall, times.cpu,
         PeakMegabytes(), more.c_str());
}

std::string Figure(const char* name, uint64_t value) {
  return std::string(", \"") + name + "\": " + std::to_string(value);
}

Status Read(const std::string& path) {
  Result<ReadReport> report = ReadReport();
  const Times times =
      Measure([&] { report = ReadPackets(path, [](std::string_view) {}); });
  if (!report.ok())
    return std::move(report).status();
  Print(times, Figure("bytes", report.value().bytes));
  return {};
}

// As `heap_profile query` does.
Result<std::unique_ptr<TraceDatabase>> Open(const std::string& path) {
  ReturnFreedMemory();
  auto trace = std::make_unique<ImportedTrace>();
  auto builder = std::make_unique<TraceBuilder>(trace.get());
  builder->DeferDecoding();
  std::vector<std::string> warnings;
  HPD_TRY(ImportFiles({&path, 1}, *builder, &warnings));
  return TraceDatabase::Create(std::move(trace), {std::move(builder), {}});
}

Status MeasureOpening(const std::string& path) {
  Result<std::unique_ptr<TraceDatabase>> database =
      Status(StatusCode::kNotFound, "nothing was opened");
  const Times times = Measure([&] { database = Open(path); });
  if (!database.ok())
    return std::move(database).status();
  Print(times, "");
  return {};
}

// `times` is of the query alone, what it decodes included.
Status MeasureQuery(const std::string& path, std::string_view name) {
  HPD_TRY_ASSIGN(const std::unique_ptr<TraceDatabase> database, Open(path));
  for (const NamedQuery& query : kQueries) {
    if (name != query.name)
      continue;
    ReadingSink sink;
    Status status;
    const Times times = Measure([&] { status = database->Run(query.sql, sink); });
    HPD_TRY(std::move(status));
    Print(times, Figure("rows", sink.rows()));
    return {};
  }
  return Status(StatusCode::kNotFound, "there is no such query");
}

Status Run(std::span<char*> arguments) {
  const auto is = [&](const char* verb, size_t count) {
    return arguments.size() == count && strcmp(arguments[1], verb) == 0;
  };
  const auto number = [&](size_t at) {
    return static_cast<uint32_t>(strtoul(arguments[at], nullptr, 10));
  };
  if (is("make", 5) && number(4) > 0 && number(3) / kMaxDepth < number(4))
    return Make(arguments[2], number(3), number(4));
  if (is("read", 3))
    return Read(arguments[2]);
  if (is("open", 3))
    return MeasureOpening(arguments[2]);
  if (is("query", 4))
    return MeasureQuery(arguments[2], arguments[3]);
  if (!is("names", 2))
    return Status(
        StatusCode::kInvalidArgument,
        "usage: bench_query make TRACE N LEAVES | names | read TRACE | open TRACE "
        "| query TRACE NAME");
  for (const NamedQuery& query : kQueries)
    puts(query.name);
  return {};
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  const heapprofd::Status status = heapprofd::Run({argv, static_cast<size_t>(argc)});
  if (!status.ok())
    fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
