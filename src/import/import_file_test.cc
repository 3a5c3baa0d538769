#include "import/import_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "export/pprof.h"

namespace heapprofd {
namespace {

class ImportTest : public testing::Test {
 protected:
  Result<ImportReport> Import(std::string_view bytes,
                              const std::string& name = "dir/file") {
    MemorySource source(bytes);
    return ImportBytes(source, name, builder_);
  }

  // "main;f" -> the frame names of a callsite, outermost first.
  std::string StackOf(uint32_t callsite) const {
    std::string text;
    for (uint32_t at = callsite; at != kNoId; at = trace_.callsites.parent[at]) {
      const uint32_t frame = trace_.callsites.frame[at];
      const uint32_t set = trace_.frames.symbol_set[frame];
      std::string name(trace_.Text(trace_.frames.name[frame]));
      if (set != kNoId) {  // inlined functions are innermost first
        name.clear();
        for (size_t row = trace_.symbols.EndOf(set); row-- > set;)
          name += (name.empty() ? "" : ";") +
                  std::string(trace_.Text(trace_.symbols.name[row]));
      }
      text = text.empty() ? name : name + ";" + text;
    }
    return text;
  }

  // Stack -> "count,size" of each allocation row, in order.
  std::map<std::string, std::string> Rows() const {
    std::map<std::string, std::string> rows;
    for (size_t row = 0; row < trace_.allocations.row_count(); ++row)
      rows[StackOf(trace_.allocations.callsite[row])] +=
          std::to_string(trace_.allocations.count[row]) + "," +
          std::to_string(trace_.allocations.size[row]) + " ";
    return rows;
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
};

using Map = std::map<std::string, std::string>;

TEST_F(ImportTest, ATraceIsToldFromAProfileByItsFirstPacket) {
  using namespace std::string_literals;
  // packet { process_tree { processes { pid: 1 } } }
  const std::string tree = "\x0a\x06\x12\x04\x0a\x02\x08\x01"s;
  EXPECT_EQ(DetectFormat(tree), FileFormat::kPerfettoTrace);
  // packet { interned_data {} }, packet { perf_sample { cpu: 1 } }
  EXPECT_EQ(DetectFormat("\x0a\x02\x62\x00"s), FileFormat::kPerfettoTrace);
  EXPECT_EQ(DetectFormat("\x0a\x05\x92\x04\x02\x08\x01"s), FileFormat::kPerfettoTrace);
  // sample_type { type: 1 unit: 2 }
  EXPECT_EQ(DetectFormat("\x0a\x04\x08\x01\x10\x02"s), FileFormat::kPprof);
  // time_nanos: 300 sample_type { type: 1 unit: 2 }
  EXPECT_EQ(DetectFormat("\x48\xac\x02\x0a\x04\x08\x01\x10\x02"s), FileFormat::kPprof);
  EXPECT_EQ(DetectFormat("\x48\xac"s), FileFormat::kUnknown);
  EXPECT_EQ(DetectFormat("Heap;Pool;`x` 12\n"), FileFormat::kFolded);
  // period_type { type: 1 unit: 2 }, and a text that begins so
  EXPECT_EQ(DetectFormat("\x5a\x04\x08\x01\x10\x02"s), FileFormat::kPprof);
  EXPECT_EQ(DetectFormat("Zone;Grow 12\n"), FileFormat::kFolded);
  // sample { value: 1 }, one that goes on, an empty text, and what is none of these
  EXPECT_EQ(DetectFormat("\x12\x02\x10\x01"s), FileFormat::kPprof);
  EXPECT_EQ(DetectFormat("\x12\x7f\x10\x01"s), FileFormat::kPprof);
  EXPECT_EQ(DetectFormat("\x32\x00\x32\x01"s), FileFormat::kPprof);
  EXPECT_EQ(DetectFormat("\x12\x01x"s), FileFormat::kUnknown);
  // a type that says nothing, before a text; a packet that says nothing
  EXPECT_EQ(DetectFormat("\x0a\x00\x32\x00"s), FileFormat::kPprof);
  EXPECT_EQ(DetectFormat("\x0a\x00\x0a\x02\x62\x00"s), FileFormat::kPerfettoTrace);
  ASSERT_TRUE(Import(tree).ok());
  EXPECT_EQ(trace_.processes.size(), 2u);
}

TEST_F(ImportTest, FoldedStacksBecomeCallsites) {
  ASSERT_TRUE(
      Import("main;f;g 100\nmain;f 20\nmain;operator new(unsigned long) 3\n").ok());
  EXPECT_EQ(Rows(), (Map{{"main;f", "0,20 "},
                         {"main;f;g", "0,100 "},
                         {"main;operator new(unsigned long)", "0,3 "}}));
  EXPECT_EQ(trace_.callsites.row_count(), 4u);
  EXPECT_EQ(trace_.Text(trace_.processes[trace_.dumps[0].upid].name), "file");
}

// What is seen of a file ends within it.
TEST_F(ImportTest, AFirstStackMayBeLongerThanWhatIsLookedAt) {
  std::string stack = "main(int, char**)";
  while (stack.size() < 4096)
    stack += ";space::function(std::string const&, int)";
  EXPECT_EQ(DetectFormat(stack.substr(0, 4096)), FileFormat::kFolded);
  EXPECT_EQ(DetectFormat("# a note\n" + stack.substr(0, 4087)), FileFormat::kFolded);
  std::string json = "{\"frames\": [";
  while (json.size() < 4096)
    json += "{\"name\": \"a;b 1\"}, ";
  EXPECT_EQ(DetectFormat(json.substr(0, 4096)), FileFormat::kUnknown);
  EXPECT_TRUE(Import(stack + " 5\n").ok());
}

TEST_F(ImportTest, SourcesOfProgramsAreNoFoldedStacks) {
  EXPECT_EQ(DetectFormat("#include <stdio.h>\n\nint main(void) {\n"),
            FileFormat::kUnknown);
  EXPECT_EQ(DetectFormat("# only a note"), FileFormat::kUnknown);
  EXPECT_EQ(DetectFormat("# a note\n\nmain;f 1\n"), FileFormat::kFolded);
  EXPECT_EQ(DetectFormat("# a note\r\n\r\nmain;f 1\r\n"), FileFormat::kFolded);
  EXPECT_EQ(DetectFormat(std::string(5000, '#')), FileFormat::kFolded);  // stacks follow
}

TEST_F(ImportTest, LinesThatAreNoStacksAreCounted) {
  const Result<ImportReport> report = Import(
      "main;f 1\nnonsense\n\nmain;g x\n# note: 200\n// 7\nmain;h 4\nmain;i 8\na 2");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().bad_records, 2u);
  EXPECT_EQ(
      Rows(),
      (Map{{"a", "0,2 "}, {"main;f", "0,1 "}, {"main;h", "0,4 "}, {"main;i", "0,8 "}}));
}

TEST_F(ImportTest, StacksThatAreTooDeepKeepTheirInnermostFunctions) {
  std::string deep;
  for (int i = 0; i < 4095; ++i)
    deep += "f;";
  const Result<ImportReport> report =
      Import(deep + "holder 1\nmain;" + deep + "holder 20\nmain;" + deep + "other 4\n");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().cut_stacks, 2u);
  EXPECT_EQ(Rows(), (Map{{deep + "holder", "0,1 0,20 "}, {deep + "other", "0,4 "}}));
}

TEST_F(ImportTest, AnEndlessLineIsCutAndTheNextOneIsRead) {
  std::string text = "a;b 1\n" + std::string(3 << 20, 'x') + " 7\nc 2\n";
  const Result<ImportReport> report = Import(text);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().bytes, text.size());
  EXPECT_EQ(Rows(), (Map{{"a;b", "0,1 "}, {"c", "0,2 "}}));
}

TEST_F(ImportTest, CompressedFilesAreRead) {
  std::string packed(1000, '\0');
  z_stream stream = {};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string text = "main;f 5\n";
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  ASSERT_TRUE(Import(packed).ok());
  EXPECT_EQ(Rows(), (Map{{"main;f", "0,5 "}}));
}

constexpr char kHeaptrack[] =
    "v 10400 3\n"
    "X ./prog --flag\n"
    "I 1000 100000\n"
    "s 8 /bin/pro\n"
    "s 4 main\n"
    "s 6 main.c\n"
    "s 7 inl\nine\n"  // a name may hold a line break
    "i 401000 1 2 3 a 4 3 b\n"
    "i 402000 1\n"
    "t 1 0\n"
    "t 2 1\n"
    "a 40 2\n"
    "+ 0\n"
    "+ 0\n"
    "c 1f4\n"
    "R 10\n"
    "- 0\n"
    "+ 5\n";  // no such allocation

TEST_F(ImportTest, HeaptrackEventsAreSummedPerStack) {
  const Result<ImportReport> report = Import(kHeaptrack);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().bad_records, 1u);
  ASSERT_EQ(trace_.dumps.size(), 1u);
  EXPECT_EQ(Rows(), (Map{{"inl\nine;main", "2,128 -1,-64 "}}));
  EXPECT_EQ(trace_.dumps[0].ts, 500'000'000);
  EXPECT_EQ(trace_.dumps[0].peak_bytes, 128u);
  EXPECT_EQ(trace_.dumps[0].peak_ts, 0);
  const ImportedProcess& process = trace_.processes[trace_.dumps[0].upid];
  EXPECT_EQ(trace_.Text(process.name), "./prog");
  EXPECT_EQ(trace_.Text(process.cmdline), "./prog --flag");
  ASSERT_EQ(trace_.counters.size(), 1u);
  EXPECT_EQ(trace_.counters[0].value, 0x10 * 0x1000);
  EXPECT_EQ(trace_.Text(trace_.symbols.source_file[0]), "main.c");
  EXPECT_EQ(trace_.symbols.line[0], 10u);
}

// Who held the memory when most was live: 64 and 32 bytes at two stacks, of which one and
// the other change behind it.
TEST_F(ImportTest, HeaptrackStacksHaveWhatTheyHeldAtThePeak) {
  const std::string begin =
      "v 10400 3\ns 4 a.so\ns 1 f\ns 1 g\ni 1000 1 2\ni 2000 1 3\nt 1 0\nt 2 0\n"
      "a 40 1\na 20 2\n";
  ASSERT_TRUE(Import(begin + "+ 0\n+ 1\n- 0\n- 1\n+ 1\n").ok());
  const EstimateTable& rows = trace_.estimates;
  ASSERT_EQ(rows.row_count(), 2u);
  EXPECT_EQ(rows.peak_bytes[0], 64);
  EXPECT_EQ(rows.peak_bytes[1], 32);
  EXPECT_EQ(rows.peak_count[0], 1);
  EXPECT_EQ(trace_.dumps[0].peak_bytes, 96u);
  // The last moment may be the peak.
  ASSERT_TRUE(Import(begin + "+ 0\n- 0\n+ 1\n+ 0\n+ 1\n").ok());
  ASSERT_EQ(rows.row_count(), 4u);
  EXPECT_EQ(rows.peak_bytes[2], 64);
  EXPECT_EQ(rows.peak_bytes[3], 64);
}

TEST_F(ImportTest, HeaptrackFormatsThatAreNotKnownAreNamed) {
  EXPECT_EQ(Import("v 10800 4\n").status().message(),
            "cannot read dir/file: it is a recording of a newer heaptrack (file format "
            "4); its heaptrack_print shows it");
  EXPECT_EQ(
      Import("v 10000\ns a.so\ni 1000 1\nt 1 0\n+ 40 1 7f0000\n").status().message(),
      "cannot read dir/file: it is a recording of the first heaptrack (file format "
      "0); heaptrack_print shows it");
}

TEST_F(ImportTest, ARawHeaptrackRecordingSaysWhatToDo) {
  const Result<ImportReport> report = Import("v 10400 3\nx /bin/a\n+ 40 1 7f0000\n");
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find(
                "it is a raw recording; run heaptrack --interpret on it first"),
            std::string::npos);
}

TargetProfile SmallProfile() {
  TargetProfile profile;
  profile.process.pid = 7;
  profile.mappings.push_back({0x1000, 0x2000, 0, 0, 0, "/bin/x", "\x12\x34"});
  profile.frames.push_back({0, 0x100, {{"main", "main", "m.c", 3}}});
  profile.frames.push_back(
      {0, 0x200, {{"in()", "_Z2inv", "i.h", 9}, {"f()", "_Z1fv", "f.c", 4}}});
  profile.callsites.push_back({kNoId, 0});
  profile.callsites.push_back({0, 1});
  HeapDump dump;
  dump.heap_name = "libc.malloc";
  dump.sampling_interval = 4096;
  dump.callsites[1] = {{100, 10, 0, 0}, {30, 3, 0, 0}};
  profile.heaps.push_back(dump);
  return profile;
}

TEST_F(ImportTest, OurOwnPprofFilesComeBack) {
  const TargetProfile profile = SmallProfile();
  PprofOptions options;
  options.time_unix_ns = 1000;
  ASSERT_TRUE(Import(EncodePprof(profile, profile.heaps[0], options)).ok());
  EXPECT_EQ(Rows(), (Map{{"main;f();in()", "10,100 -3,-30 "}}));
  const uint32_t innermost = trace_.callsites.frame[trace_.allocations.callsite[0]];
  EXPECT_EQ(trace_.Text(trace_.frames.name[innermost]), "_Z1fv");
  EXPECT_EQ(trace_.dumps[0].ts, 1000);
  EXPECT_EQ(trace_.dumps[0].sampling_interval, 4096u);
}

TEST_F(ImportTest, SeveralFilesKeepTheirProcessesApart) {
  const TargetProfile profile = SmallProfile();
  const std::string pprof = EncodePprof(profile, profile.heaps[0], {});
  ASSERT_TRUE(Import(pprof, "a.pb").ok());
  ASSERT_TRUE(Import(pprof, "b.pb").ok());
  ASSERT_EQ(trace_.dumps.size(), 2u);
  EXPECT_NE(trace_.dumps[0].upid, trace_.dumps[1].upid);
  EXPECT_EQ(trace_.callsites.row_count(), 2u);  // shared
}

TEST_F(ImportTest, WhatIsNoProfileIsRefusedWithTheFormatsThereAre) {
  for (const char* bytes : {"\x7f"
                            "ABC\x02",
                            "just text without a number\n", "{\"a\": 1}\n"}) {
    const Result<ImportReport> report = Import(bytes);
    ASSERT_FALSE(report.ok()) << bytes;
    EXPECT_NE(report.status().message().find("its format is not known"),
              std::string::npos);
  }
  EXPECT_NE(Import("").status().message().find("it is empty"), std::string::npos);
}

// Most lines of many texts end in a number.
TEST_F(ImportTest, TextIsTakenForStacksOnlyWhenMostOfItIs) {
  const auto words_of = [this](std::string_view text) {
    const Result<ImportReport> report = Import(text);
    return report.ok() ? "read" : std::string(report.status().message());
  };
  for (const char* text :
       {"nr_free_pages 123\nnr_zone_inactive_anon 77\n",
        "Jan 1 server: request; took 5\nok\nok\n", "fn=main\n16 5\n17 6\n",
        "name,count\nmain;f,5\n", "main 10\n"})
    EXPECT_NE(words_of(text).find("its format is not known; it "), std::string::npos)
        << text;
  EXPECT_NE(words_of("name,count\nf,5\n").find("it looks like a table (CSV)"),
            std::string::npos);
  EXPECT_NE(words_of(" {\"a\": 1}\n").find("it looks like JSON"), std::string::npos);
  EXPECT_NE(words_of("a\nb\n").find("most of its lines are no folded stacks"),
            std::string::npos);
  // What was seen first were stacks.
  std::string text;
  while (text.size() < 5000)
    text += "main;f 1\n";
  EXPECT_EQ(words_of(text), "read");
  for (int i = 0; i < 3000; ++i)
    text += "a line of a log\n";
  EXPECT_NE(words_of(text).find(": it begins like folded stacks, but 3000 of its 3556 "
                                "lines are none (main;f;g 4096)"),
            std::string::npos)
      << words_of(text);
}

TEST_F(ImportTest, NotesAndEmptyLinesBeforeStacksAreNone) {
  ASSERT_TRUE(Import("\nmain;f 10\n# total 200\n\nmain;g 5\n").ok());
  EXPECT_EQ(Rows(), (Map{{"main;f", "0,10 "}, {"main;g", "0,5 "}}));
}

TEST_F(ImportTest, FoldedStacksTellLiveBytesOnly) {
  ASSERT_TRUE(Import("main;f 10\nmain;g 5\n").ok());
  const ImportedDump& dump = trace_.dumps[0];
  EXPECT_TRUE(dump.told.live_size);
  EXPECT_FALSE(dump.told.live_count || dump.told.allocated());
  EXPECT_EQ(dump.first_live_row, 0u);
}

TEST_F(ImportTest, FractionsOfFoldedStacksAddUp) {
  ASSERT_TRUE(Import("main;f 0.5\nmain;f 0.25\nmain;g 2.75\nmain;h -1.5\n").ok());
  int64_t sum = 0;
  for (const int64_t size : trace_.allocations.size.span())
    sum += size;
  EXPECT_EQ(sum, 2);
}

TEST_F(ImportTest, ADifferenceOfFoldedStacksIsSaid) {
  const Result<ImportReport> negative = Import("main;f -10\nmain;g 5\n");
  ASSERT_TRUE(negative.ok());
  ASSERT_EQ(negative.value().notes.size(), 1u);
  EXPECT_EQ(negative.value().notes[0],
            "1 of its stacks are negative, as in a difference of two profiles: sums may "
            "hide what grew");
  EXPECT_EQ(Import("main;f 10 30\nmain;g 5 5\n").status().message(),
            "cannot read dir/file: each of its stacks has two values, as difffolded.pl "
            "writes them; give heap_profile diff the two files themselves");
}

// By their first bytes: what they are, and the command that converts or shows them.
TEST_F(ImportTest, FilesOfOtherToolsAreNamed) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> kFiles[] = {
      {"heap_v2/524288\n  t*: 1: 2\n", "jeprof --collapsed PROGRAM FILE > x.folded"},
      {"heap profile: 13: 1595680 [1: 2] @ heap/1048576\n",
       "go tool pprof -proto PROGRAM FILE > x.pb.gz"},
      {"--- heapz 1 ---\nformat = java\n", "go tool pprof -proto FILE > x.pb.gz"},
      {"--- contentionz 1 ---\ncycles/second = 3201000000\n", "not of memory"},
      {"--- contentionz 1 ---\nformat = java\nsampling period = 100\n", "not of memory"},
      {"goroutine profile: total 5\n", "Go's goroutines"},
      {"threadcreate profile: total 5\n", "Go's threads"},
      {"desc: --x\ncmd: ./a\ntime_unit: i\n",
       "it is a recording of Valgrind's massif; ms_print shows it"},
      {"# callgrind format\nversion: 1\n", "callgrind_annotate"},
      {"version: 1\ncreator: callgrind-3.19\n", "callgrind_annotate"},
      {"positions: instr line\nevents: inuse_space(MB)\n",
       "it is a profile in callgrind's format; callgrind_annotate shows it"},
      {"{\"dhatFileVersion\":2",
       "it is a recording of Valgrind's DHAT; dh_view.html, which comes with Valgrind, "
       "shows it"},
      {"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"",
       "it is a profile of speedscope; https://www.speedscope.app shows it"},
      {"{\"snapshot\":{\"meta\":{", "heap snapshot of V8"},
      {"{\"head\":{\"callFrame\":{", "heap profile of V8"},
      {"{\n \"traceEvents\": [",
       "it is a trace as JSON; https://ui.perfetto.dev shows it"},
      {"PERFILE2\x68"s, "it is a recording of perf, not of memory; perf report shows it"},
      {"FLR\0\0\2"s, "jfrconv --alloc --total -o collapsed FILE x.folded"},
      {"memray\0\x0b"s, "it is a recording of memray; memray flamegraph FILE shows it"},
      {"JAVA PROFILE 1.0.1, created Thu\n", "jcmd PID GC.heap_dump x.hprof"},
      {"\xfd"
       "7zXZ\0\0"s,
       "xz -d FILE"},
      {"BZh91AY", "bzip2 -d FILE"},
      {"PK\x03\x04\x14", "unzip FILE"},
      {"\x04\x22\x4d\x18\x64", "lz4 -d FILE"},
      {"\x7f"
       "ELF\x02",
       "a program or a library"},
      {"\xff\xfe"
       "a\0"s,
       "iconv -f UTF-16"},
      {"\xfe\xff\0a"s, "iconv -f UTF-16"},
      {"<svg xmlns", "a picture"},
      {"<?xml version='1.0'?>\n<svg", "a picture"},
      {"<!DOCTYPE html>", "a web page"},
      {"<html>", "a web page"},
      {"# HELP x\n# TYPE x counter\nx 5\n", "Prometheus"},
      {"# TYPE x counter\nx 5\n", "Prometheus"},
      {"\n\n", "it has empty lines only"},
  };
  for (const auto& [bytes, words] : kFiles) {
    const Result<ImportReport> report = Import(bytes);
    ASSERT_FALSE(report.ok()) << bytes;
    EXPECT_NE(report.status().message().find(words), std::string::npos)
        << bytes << ": " << report.status().message();
  }
}

TEST_F(ImportTest, ATruncatedPprofGivesWhatComesBefore) {
  const TargetProfile profile = SmallProfile();
  const std::string pprof = EncodePprof(profile, profile.heaps[0], {});
  for (size_t size = 1; size < pprof.size(); ++size) {
    ImportedTrace trace;
    TraceBuilder builder(&trace);
    MemorySource source(std::string_view(pprof).substr(0, size));
    const Result<ImportReport> report = ImportBytes(source, "x", builder);
    EXPECT_LE(trace.allocations.row_count(), 2u);
  }
}

}  // namespace
}  // namespace heapprofd
