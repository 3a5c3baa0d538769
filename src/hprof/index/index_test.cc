#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>

#include "hprof/index/heap_index.h"
#include "hprof/index/index_format.h"
#include "hprof/test_dump.h"
#include "hprof/threads.h"
#include "object_graph/paths.h"
#include "object_graph/suspects.h"

namespace heapprofd::hprof {
namespace {

std::shared_ptr<const MappedInput> MappedBytes(const std::string& bytes) {
  ScopedFd fd(memfd_create("index", MFD_CLOEXEC));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  Result<MappedInput> input = MappedInput::Map(std::move(fd), "index");
  EXPECT_TRUE(input.ok());
  return std::make_shared<const MappedInput>(std::move(input).value());
}

// A dump, and its index.
struct Indexed {
  explicit Indexed(const TestDump& dump, IndexKey wanted = {})
      : bytes(dump.bytes()), file(DumpFile::Read(bytes, "dump").value()), key(wanted) {
    Result<HeapGraph> loaded = LoadGraph(file, file.dumps()[0]);
    EXPECT_TRUE(loaded.ok());
    heap.emplace(std::move(loaded).value());
    const Status written =
        WriteIndex(key, file, *heap, RetentionOf(*heap), [this](std::string_view part) {
          index += part;
          return Status();
        });
    EXPECT_TRUE(written.ok());
  }

  static Retention RetentionOf(const HeapGraph& heap) {
    Result<Retention> found = FindRetention(heap.graph, std::atomic<bool>(false));
    EXPECT_TRUE(found.ok());
    return std::move(found).value();
  }

  Result<HeapGraph> Read(const std::string& from) const {
    return ReadIndex(MappedBytes(from), key, file, bytes);
  }

  const std::string bytes;
  const DumpFile file;
  const IndexKey key;
  std::optional<HeapGraph> heap;
  std::string index;
};

// All that views ask for; what is out of range ends the program.
std::string AnswersOf(const Indexed& indexed, const HeapGraph& heap) {
  const Retention retention = Indexed::RetentionOf(heap);
  const ObjectGraph& graph = heap.graph;
  std::string text = std::to_string(retention.reachable_count()) + " " +
                     std::to_string(retention.reachable_bytes()) + "\n";
  const auto add = [&text](uint64_t number) { text += std::to_string(number) + " "; };
  std::vector<uint32_t> all;
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    text += graph.types().at(graph.TypeOf(object)).name + " ";
    add(graph.SizeOf(object));
    add(retention.DominatorOf(object));
    add(retention.RetainedBy(object));
    add(heap.ids.IdOf(object));
    add(heap.ids.Find(heap.ids.IdOf(object)));
    text += "\n";
    all.push_back(object);
  }
  for (const ObjectPath& path : NearestPaths(graph, all)) {
    for (const uint32_t object : path)
      text += graph.types().at(graph.TypeOf(object)).name + ".";
  }
  for (const Suspect& suspect : FindSuspects(graph, retention, 40)) {
    add(suspect.object);
    add(suspect.parts.size());
  }
  for (const std::vector<uint32_t>& way : WaysDown(graph, retention, all))
    add(way.back());
  std::vector<uint32_t> groups;
  for (uint32_t type = 0; type < graph.types().size(); ++type)
    groups.push_back(type);
  for (const uint64_t bytes : RetainedByGroup(graph, retention, groups))
    add(bytes);
  const MergedWays merged = MergeNearestPaths(
      graph, [](uint32_t object) { return object % 2 == 0; },
      [&](uint32_t object) { return graph.TypeOf(object); });
  for (const MergedWay& way : merged.ways) {
    add(way.group);
    add(way.objects);
  }
  for (const HeapThread& thread : ThreadsOf(indexed.file, indexed.file.dumps()[0], heap))
    add(thread.object);
  std::vector<NamedReference> references = {{100, 110, ""}, {400, 200, ""}};
  NameReferences(indexed.file, indexed.file.dumps()[0], heap.census, &references);
  for (const NamedReference& reference : references)
    text += reference.name;
  return text;
}

TEST(HeapIndexTest, GivesTheSameAnswersAsTheDump) {
  for (const uint32_t id_bytes : {4u, 8u}) {
    const Indexed indexed(Lists(id_bytes));
    const Result<HeapGraph> kept = indexed.Read(indexed.index);
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    EXPECT_EQ(AnswersOf(indexed, kept.value()), AnswersOf(indexed, *indexed.heap));
    EXPECT_EQ(kept.value().missing_references, indexed.heap->missing_references);
  }
}

TEST(HeapIndexTest, IdsThatAreScatteredAreFoundToo) {
  TestDump dump(8);
  dump.String(1, "next").Class(10, "java/lang/Class").Class(20, "Node");
  std::string objects = dump.Root(kRootStickyClass, 20) + dump.ClassDump(10, 0, {}) +
                        dump.ClassDump(20, 0, {{1, kObject}});
  constexpr uint64_t kFar = uint64_t{1} << 40;
  for (uint64_t i = 1; i <= 100; ++i)
    objects += dump.Instance(i * kFar + i, 20, dump.Id((i + 1) * kFar + i + 1));
  dump.Segment(objects + dump.Root(kRootJniGlobal, kFar + 1, dump.Id(5))).End();
  const Indexed indexed(dump);
  const Result<HeapGraph> kept = indexed.Read(indexed.index);
  ASSERT_TRUE(kept.ok());
  EXPECT_FALSE(kept.value().ids.parts().sorted.empty());
  EXPECT_EQ(AnswersOf(indexed, kept.value()), AnswersOf(indexed, *indexed.heap));
}

TEST(HeapIndexTest, OneOfAnotherDumpIsNotFound) {
  IndexKey key;
  key.sample = 1;
  const Indexed other(Lists(8), key);
  const Indexed indexed(Lists(8));
  EXPECT_EQ(indexed.Read(other.index).status().code(), StatusCode::kNotFound);
}

TEST(HeapIndexTest, OneOfAnotherVersionIsNotFoundWhateverFollowsItsKey) {
  const Indexed indexed(Lists(8));
  IndexKey key;
  key.version = kIndexVersion + 1;
  std::string index(indexed.index.size(), '\xff');
  memcpy(index.data(), &key, sizeof(key));
  EXPECT_EQ(indexed.Read(index).status().code(), StatusCode::kNotFound);
}

TEST(HeapIndexTest, OneThatIsCutIsNone) {
  const Indexed indexed(Lists(8));
  for (size_t size = 1; size < indexed.index.size(); ++size)
    EXPECT_EQ(indexed.Read(indexed.index.substr(0, size)).status().code(),
              StatusCode::kCorrupt)
        << size;
}

// Each answer is checked, whatever the bytes are.
TEST(HeapIndexTest, WrongBytesGiveWrongAnswersAndNoOthers) {
  const Indexed indexed(Lists(8));
  size_t used = 0;
  for (size_t at = 0; at < indexed.index.size(); ++at) {
    for (const char wrong : {'\0', '\1', '\x7f', '\xff'}) {
      std::string index = indexed.index;
      index[at] = wrong;
      const Result<HeapGraph> kept = indexed.Read(index);
      if (kept.ok()) {
        ++used;
        AnswersOf(indexed, kept.value());
      }
    }
  }
  EXPECT_GT(used, 1000u);
}

TEST(HeapIndexTest, ErrorsOfWritingArePassedOn) {
  const Indexed indexed(Lists(8));
  for (size_t pieces = 0; pieces < 3; ++pieces) {
    size_t left = pieces;
    const Status status =
        WriteIndex(indexed.key, indexed.file, *indexed.heap,
                   Indexed::RetentionOf(*indexed.heap), [&left](std::string_view) {
                     return left-- > 0 ? Status() : Status(StatusCode::kIo, "full");
                   });
    EXPECT_EQ(status.message(), "full");
  }
}

}  // namespace
}  // namespace heapprofd::hprof
