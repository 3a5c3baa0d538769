#include "hprof/dump_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "hprof/histogram.h"
#include "hprof/load_graph.h"
#include "hprof/test_dump.h"
#include "object_graph/dominators.h"
#include "object_graph/paths.h"

namespace heapprofd::hprof {
namespace {

DumpFile Open(const std::string& bytes) {
  Result<DumpFile> file = DumpFile::Read(bytes, "test");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return std::move(file).value();
}

uint64_t ObjectsIn(const DumpFile& file) {
  uint64_t objects = 0;
  for (const HeapDump& dump : file.dumps())
    objects += TakeCensus(file, dump).objects;
  return objects;
}

constexpr uint64_t kListObjects = 13;  // with the classes

std::string Row(const std::vector<HistogramRow>& rows, const std::string& name) {
  for (const HistogramRow& row : rows) {
    if (row.name == name)
      return std::to_string(row.objects) + " of " + std::to_string(row.bytes);
  }
  return "none";
}

TEST(DumpFileTest, ADumpAsTextIsNamed) {
  const Result<DumpFile> file =
      DumpFile::Read("JAVA PROFILE 1.0.1, created Sat Jan  1 2000\n", "java.hprof.txt");
  EXPECT_EQ(file.status().message(),
            "cannot read java.hprof.txt: it is a heap dump as text (java "
            "-agentlib:hprof); jcmd PID GC.heap_dump x.hprof makes one that can be read");
}

class EveryIdSize : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(DumpFileTest, EveryIdSize, testing::Values(4u, 8u));

TEST_P(EveryIdSize, HistogramCountsAllObjects) {
  const TestDump made = Lists(GetParam());
  const DumpFile file = Open(made.bytes());
  EXPECT_EQ(file.damage(), "");
  ASSERT_EQ(file.dumps().size(), 1u);
  const std::vector<HistogramRow> rows =
      MakeHistogram(file, TakeCensus(file, file.dumps()[0]));
  const uint64_t node = GetParam() == 4 ? 16 : 24;  // 8 or 12, two references
  EXPECT_EQ(Row(rows, "Node"), "4 of " + std::to_string(4 * node));
  EXPECT_EQ(Row(rows, "byte[]"), GetParam() == 4 ? "2 of 48" : "2 of 56");
  EXPECT_EQ(Row(rows, "Node[]"), "1 of 24");
  EXPECT_EQ(Row(rows, "java.lang.Class").substr(0, 5), "5 of ");
}

TEST_P(EveryIdSize, GraphHasWhatHolds) {
  const TestDump made = Lists(GetParam());
  const DumpFile file = Open(made.bytes());
  Result<HeapGraph> loaded = LoadGraph(file, file.dumps()[0]);
  ASSERT_TRUE(loaded.ok());
  const HeapGraph& heap = loaded.value();
  EXPECT_EQ(heap.graph.object_count(), kListObjects);
  EXPECT_EQ(heap.missing_references, 1u);
  Result<DominatorTree> tree = FindDominators(heap.graph, std::atomic<bool>(false));
  ASSERT_TRUE(tree.ok());
  const auto dominator = [&](uint64_t id) {
    const uint32_t above = tree.value().dominator[heap.ids.Find(id)];
    return above < kUnreachable ? heap.ids.IdOf(above) : above;
  };
  EXPECT_EQ(dominator(100), 400u);
  EXPECT_EQ(dominator(400), 20u);
  EXPECT_EQ(dominator(500), 110u);
  EXPECT_EQ(dominator(210), 200u) << "a weak reference holds nothing";
  EXPECT_EQ(dominator(300), kHeldByRoots);
  EXPECT_EQ(dominator(600), kUnreachable);
}

TEST_P(EveryIdSize, WeakReferencesHoldWhenThatIsWanted) {
  const TestDump made = Lists(GetParam());
  const DumpFile file = Open(made.bytes());
  const auto holders = [&file](Holding holding) {
    Result<HeapGraph> loaded = LoadGraph(file, file.dumps()[0], holding);
    EXPECT_TRUE(loaded.ok());
    const HeapGraph& heap = loaded.value();
    std::vector<uint64_t> ids;
    const ObjectPath path = NearestPaths(heap.graph, {heap.ids.Find(210)})[0];
    for (const uint32_t object : path)
      ids.push_back(heap.ids.IdOf(object));
    return ids;
  };
  EXPECT_EQ(holders(Holding::kWeak), (std::vector<uint64_t>{300, 210}));
  EXPECT_EQ(holders(Holding::kStrong), holders(Holding::kSoft));
  EXPECT_EQ(holders(Holding::kSoft), (std::vector<uint64_t>{20, 400, 200, 210}));
}

// Four objects, each referred to by a java.lang.ref.Finalizer alone: 100 is in none of
// the machine's lists, 110 in that of those it has discovered, 120 in the queue, 130 the
// last one there. Classes: 10 Finalizer, 12 FinalReference, 11 Reference, 20 Resource.
std::string Finalizers(uint32_t id_bytes) {
  TestDump dump(id_bytes);
  dump.String(1, "referent").String(2, "next").String(3, "discovered");
  dump.Class(10, "java/lang/ref/Finalizer").Class(11, "java/lang/ref/Reference");
  dump.Class(12, "java/lang/ref/FinalReference").Class(20, "Resource");
  std::string body = dump.ClassDump(11, 0, {{1, kObject}, {2, kObject}, {3, kObject}}) +
                     dump.ClassDump(12, 11, {}) + dump.ClassDump(10, 12, {}) +
                     dump.ClassDump(20, 0, {});
  const auto add = [&](uint64_t id, uint64_t referent, uint64_t next, uint64_t found) {
    body += dump.Instance(id, 10, dump.Id(referent) + dump.Id(next) + dump.Id(found)) +
            dump.Root(kRootJniGlobal, id, dump.Id(1));
    if (referent != 0)
      body += dump.Instance(referent, 20, "");
  };
  add(200, 100, 0, 0);
  add(210, 110, 0, 200);
  add(220, 120, 230, 0);
  add(230, 130, 230, 0);
  add(240, 0, 240, 0);  // it has run
  return dump.Segment(body).End().bytes();
}

TEST_P(EveryIdSize, WhatWaitsForItsFinalizerIsHeld) {
  const std::string made = Finalizers(GetParam());
  const DumpFile file = Open(made);
  const Result<HeapGraph> loaded = LoadGraph(file, file.dumps()[0]);
  ASSERT_TRUE(loaded.ok());
  const HeapGraph& heap = loaded.value();
  std::vector<uint64_t> waiting;
  for (const GraphRoot& root : heap.graph.roots()) {
    if (heap.roots[root.kind].tag == kRootFinalizing)
      waiting.push_back(heap.ids.IdOf(root.object));
  }
  EXPECT_EQ(waiting, (std::vector<uint64_t>{110, 120, 130}));
  EXPECT_TRUE(NearestPaths(heap.graph, {heap.ids.Find(100)})[0].empty())
      << "a finalizer that nobody has found yet holds nothing";
}

TEST_P(EveryIdSize, PathsHaveTheNamesOfFields) {
  const TestDump made = Lists(GetParam());
  const DumpFile file = Open(made.bytes());
  Result<HeapGraph> heap = LoadGraph(file, file.dumps()[0]);
  ASSERT_TRUE(heap.ok());
  std::vector<uint64_t> ids;
  const ObjectPath path =
      NearestPaths(heap.value().graph, {heap.value().ids.Find(500)})[0];
  for (const uint32_t object : path)
    ids.push_back(heap.value().ids.IdOf(object));
  EXPECT_EQ(ids, (std::vector<uint64_t>{20, 400, 100, 110, 500}));
  std::vector<NamedReference> references = {
      {20, 400, ""}, {400, 200, ""}, {100, 110, ""}, {110, 500, ""}, {600, 1, ""}};
  NameReferences(file, file.dumps()[0], heap.value().census, &references);
  std::string names;
  for (const NamedReference& reference : references)
    names += reference.name;
  EXPECT_EQ(names, ".static LIST[1].next.payload");
}

// Whatever is left can be read, no more, and it is said where it ends.
TEST_P(EveryIdSize, CutAtEveryByteGivesWhatIsThere) {
  const std::string whole = Lists(GetParam()).bytes();
  uint64_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    Result<DumpFile> file = DumpFile::Read(bytes, "test");
    EXPECT_EQ(file.ok(), size >= kHeaderBytes);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), StatusCode::kCorrupt);
      continue;
    }
    const uint64_t objects = ObjectsIn(file.value());
    EXPECT_GE(objects, most) << "cut at " << size;
    most = objects;
    if (!file.value().dumps().empty()) {
      EXPECT_NE(file.value().damage().find(std::to_string(size)), std::string::npos)
          << file.value().damage();
      EXPECT_TRUE(LoadGraph(file.value(), file.value().dumps()[0]).ok());
    }
  }
  EXPECT_EQ(most, kListObjects);
}

// Every four bytes may be a length.
TEST_P(EveryIdSize, ForgedLengthsAreSurvived) {
  const std::string whole = Lists(GetParam()).bytes();
  for (size_t at = kHeaderBytes; at + 4 <= whole.size(); ++at) {
    for (const uint32_t forged : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
      std::string bytes = whole;
      bytes.replace(at, 4, TestDump::Number(forged));
      const DumpFile file = Open(bytes);
      EXPECT_LE(ObjectsIn(file), bytes.size());
      if (file.dumps().empty())
        continue;
      Result<HeapGraph> heap = LoadGraph(file, file.dumps()[0]);
      ASSERT_TRUE(heap.ok());
      EXPECT_TRUE(FindDominators(heap.value().graph, std::atomic<bool>(false)).ok());
    }
  }
}

// A file may be written while it is read: each byte after the first walk.
TEST_P(EveryIdSize, ChangesBetweenTheWalksAreSurvived) {
  std::string bytes = Lists(GetParam()).bytes();
  const DumpFile file = Open(bytes);
  const HeapDump& dump = file.dumps()[0];
  size_t refused = 0;
  for (size_t at = file.OffsetOf(dump.ranges[0].begin); at < bytes.size(); ++at) {
    for (const char changed : {'\0', '\x02', '\x0b', '\x7f', '\xff'}) {
      Column<uint64_t> ids;
      HeapCensus census = TakeCensus(file, dump, &ids);
      const char before = std::exchange(bytes[at], changed);
      Result<HeapGraph> heap = LoadGraph(file, dump, std::move(census), std::move(ids));
      if (heap.ok()) {
        EXPECT_TRUE(FindDominators(heap.value().graph, std::atomic<bool>(false)).ok());
      } else {
        EXPECT_EQ(heap.status().code(), StatusCode::kCorrupt);
        ++refused;
      }
      bytes[at] = before;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(DumpFileTest, StaticsThatChangeStayWithinTheirRecord) {
  TestDump dump(4);
  dump.Segment(dump.ClassDump(10, 0, {}, {{1, 100}, {2, 200}})).End();
  std::string bytes = dump.bytes();
  const DumpFile file = Open(bytes);

  struct Changer : HeapVisitor {
    void Class(const ClassRecord& record) {
      bytes->at(file->OffsetOf(record.statics) + 4) = static_cast<char>(kLong);
      ForEachStatic(record, 4, [&](const uint8_t*, uint8_t, const uint8_t* value) {
        ++statics;
        EXPECT_LE(value + 8, record.statics_end);
      });
    }

    std::string* bytes = nullptr;
    const DumpFile* file = nullptr;
    int statics = 0;
  } changer;

  changer.bytes = &bytes;
  changer.file = &file;
  WalkDump(file, file.dumps()[0], changer);
  EXPECT_EQ(changer.statics, 1);
}

TEST(DumpFileTest, TwoDumpsAreTwo) {
  TestDump dump = Lists(8);
  dump.Segment(dump.Bytes(700, "second")).End();
  const DumpFile file = Open(dump.bytes());
  ASSERT_EQ(file.dumps().size(), 2u);
  EXPECT_EQ(TakeCensus(file, file.dumps()[0]).objects, kListObjects);
  EXPECT_EQ(TakeCensus(file, file.dumps()[1]).objects, 1u);
}

TEST(DumpFileTest, OldDumpsAreOneRecordEach) {
  TestDump dump(4, '1');
  dump.Record(kHeapDump, dump.Bytes(100, "first"));
  dump.Record(kHeapDump, dump.Bytes(100, "again") + dump.Bytes(200, "second"));
  const DumpFile file = Open(dump.bytes());
  EXPECT_EQ(file.damage(), "");
  ASSERT_EQ(file.dumps().size(), 2u);
  EXPECT_EQ(TakeCensus(file, file.dumps()[1]).objects, 2u);
}

// A virtual machine writes the length when it is done.
TEST(DumpFileTest, WithoutALengthThePartsCount) {
  TestDump dump(8);
  dump.Segment(dump.Bytes(100, "a") + dump.Bytes(200, "b")).ForgeLength(0);
  dump.Segment(dump.Bytes(300, "c")).End();
  const DumpFile file = Open(dump.bytes());
  EXPECT_EQ(file.damage(), "");
  EXPECT_EQ(ObjectsIn(file), 3u);
}

TEST(DumpFileTest, PartsMayGoPastTheEndOfTheirRecord) {
  TestDump dump(8);
  const std::string body = dump.Bytes(100, "abc") + dump.Bytes(200, "0123456789");
  dump.Segment(body).ForgeLength(static_cast<uint32_t>(body.size() - 4));
  dump.Segment(dump.Bytes(300, "c")).End();
  const DumpFile file = Open(dump.bytes());
  EXPECT_EQ(file.damage(), "");
  EXPECT_EQ(ObjectsIn(file), 3u);
}

TEST(DumpFileTest, WhatIsUnknownEndsItsRecordOnly) {
  TestDump dump(8);
  dump.Segment(dump.Bytes(100, "a") + dump.Root(0x88, 7) + dump.Bytes(200, "b"));
  dump.Segment(dump.Bytes(300, "c")).End();
  const DumpFile file = Open(dump.bytes());
  const HeapCensus census = TakeCensus(file, file.dumps()[0]);
  EXPECT_EQ(census.objects, 2u);
  ASSERT_EQ(census.damage.size(), 1u);
  EXPECT_NE(census.damage[0].find("there is no kind 0x88"), std::string::npos);
}

TEST(DumpFileTest, OtherFilesAreRefused) {
  EXPECT_FALSE(DumpFile::Read("", "x").ok());
  EXPECT_FALSE(DumpFile::Read(std::string(100, 'x'), "x").ok());
  const Status tail = DumpFile::Read(std::string("\x1c\0\0", 3), "x").status();
  EXPECT_NE(tail.message().find("heap_profile hprof merge"), std::string::npos);
  EXPECT_NE(
      DumpFile::Read(TestDump(5).bytes(), "x").status().message().find("only 4 and 8"),
      std::string::npos);
}

TEST(DumpFileTest, AndroidsDumpsTellTheSizes) {
  const TestDump made = Lists(4, '3');
  const DumpFile file = Open(made.bytes());
  EXPECT_EQ(Row(MakeHistogram(file, TakeCensus(file, file.dumps()[0])), "Node"),
            "4 of 96");
}

// Superclasses in a circle.
TEST(DumpFileTest, CirclesOfClassesEnd) {
  TestDump dump(8);
  dump.Segment(dump.ClassDump(10, 20, {{1, kObject}}) + dump.ClassDump(20, 10, {}) +
               dump.Instance(100, 10, dump.Id(100)))
      .End();
  const DumpFile file = Open(dump.bytes());
  EXPECT_TRUE(LoadGraph(file, file.dumps()[0]).ok());
  const HeapCensus census = TakeCensus(file, file.dumps()[0]);
  EXPECT_EQ(census.classes.Ancestry(census.classes.Find(10)).size(), 2u);
}

// Fields without bytes would make a small dump the work of hours.
TEST(DumpFileTest, FieldsOfUnknownTypesAreDamage) {
  TestDump dump(8);
  dump.Segment(dump.Bytes(100, "a") + dump.ClassDump(10, 0, {{1, kObject}, {2, 3}}))
      .End();
  const DumpFile file = Open(dump.bytes());
  const HeapCensus census = TakeCensus(file, file.dumps()[0]);
  EXPECT_EQ(census.objects, 1u);
  ASSERT_EQ(census.damage.size(), 1u);
  EXPECT_NE(census.damage[0].find("of an unknown type"), std::string::npos);
}

}  // namespace
}  // namespace heapprofd::hprof
