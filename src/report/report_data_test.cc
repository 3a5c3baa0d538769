#include "report/report_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include <nlohmann/json.hpp>

#include "base/byte_reader.h"
#include "import/perfetto/test_traces.h"
#include "profile/figures.h"
#include "query/dump_values.h"
#include "report/json_rows.h"
#include "report/report_facts.h"
#include "report/report_functions.h"
#include "report/stack_tree.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

// What the page reads (src/report/page/data.js).
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : reader_(bytes) {
    EXPECT_EQ(reader_.ReadBytes(8), "hpdrep1\n");
    facts = nlohmann::json::parse(Block());
    ReadTexts();
    ReadFunctions();
    for (size_t i = 0; i < facts["trees"].size(); ++i)
      ReadTree();
    EXPECT_TRUE(reader_.ok());
    EXPECT_EQ(reader_.left(), 0u);
  }

  struct Node {
    uint64_t depth;
    std::string name;
    int64_t size;
    int64_t count;
    int64_t alloc_size;
    int64_t alloc_count;
    int64_t error;
  };

  using Tree = std::vector<Node>;

  // "main;f 12 1": live bytes and objects of each node with its callers.
  static std::string Folded(const Tree& tree) {
    std::string text;
    std::vector<std::string> path;
    for (const Node& node : tree) {
      path.resize(node.depth);
      path.push_back(node.name);
      std::string line;
      for (size_t i = 1; i < path.size(); ++i)
        line += (i == 1 ? "" : ";") + path[i];
      if (node.size != 0 || node.count != 0)
        text += line + " " + std::to_string(node.size) + " " +
                std::to_string(node.count) + "\n";
    }
    return text;
  }

  nlohmann::json facts;
  std::vector<std::string> texts;
  std::vector<std::string> functions;
  std::vector<uint64_t> flags;
  std::vector<Tree> trees;

 private:
  std::string_view Block() { return reader_.ReadBytes(reader_.Read<uint32_t>()); }

  std::vector<uint64_t> Column(size_t count) {
    const std::string_view bytes = Block();
    if (bytes.empty())
      return std::vector<uint64_t>(count);
    std::vector<uint64_t> values(1);
    int shift = 0;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      values.back() |= static_cast<uint64_t>(byte & 127) << shift;
      shift += 7;
      if (byte < 128) {
        values.push_back(0);
        shift = 0;
      }
    }
    values.pop_back();
    EXPECT_EQ(values.size(), count);
    values.resize(count);
    return values;
  }

  static int64_t Signed(uint64_t value) {
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  void ReadTexts() {
    const std::vector<uint64_t> lengths = Column(reader_.Read<uint32_t>());
    ByteReader bytes(Block());
    for (const uint64_t length : lengths)
      texts.emplace_back(bytes.ReadBytes(length));
  }

  void ReadFunctions() {
    const size_t count = reader_.Read<uint32_t>();
    for (const uint64_t name : Column(count))
      functions.push_back(texts.at(name));
    for (int i = 0; i < 3; ++i)
      Column(count);
    flags = Column(count);
  }

  void ReadTree() {
    const size_t count = reader_.Read<uint32_t>();
    const bool all_is_live = reader_.Read<uint32_t>() == 1;
    const std::vector<uint64_t> steps = Column(count);
    const std::vector<uint64_t> rows = Column(count);
    std::array<std::vector<uint64_t>, 5> columns;
    for (size_t i = 0; i < columns.size(); ++i)
      columns[i] = all_is_live && (i == 2 || i == 3) ? columns[i - 2] : Column(count);
    Tree& tree = trees.emplace_back();
    for (size_t i = 0; i < count; ++i)
      tree.push_back({i == 0 ? 0 : tree[i - 1].depth + 1 - steps[i],
                      rows[i] == 1 ? "(rest)" : functions.at(rows[i]),
                      Signed(columns[0][i]), Signed(columns[1][i]), Signed(columns[2][i]),
                      Signed(columns[3][i]), static_cast<int64_t>(columns[4][i])});
  }

  ByteReader reader_;
};

Result<std::string> BeginAndEncode(TraceDatabase& database,
                                   const ReportOptions& options) {
  HPD_TRY_ASSIGN(BegunOrder order, BeginOrder(database));
  return EncodeReport(database, options, std::move(order));
}

class ReportDataTest : public testing::Test {
 protected:
  ReportDataTest() : trace_(std::make_unique<ImportedTrace>()), builder_(trace_.get()) {}

  // One sample of `stack` in the one dump there is.
  void Add(const std::vector<std::string>& stack, int64_t size, int64_t count) {
    if (trace_->dumps.empty()) {
      ImportedDump& dump = trace_->dumps.emplace_back();
      dump.heap_name = builder_.Intern("libc.malloc");
      dump.ts = 7;
      dump.start_ts = 1;
    }
    uint32_t callsite = kNoId;
    for (const std::string& name : stack)
      callsite = builder_.InternCallsite(
          callsite, builder_.InternFrame(builder_.Intern(name), kNoId, 0));
    trace_->allocations.dump.push_back(0);
    trace_->allocations.callsite.push_back(callsite);
    trace_->allocations.size.push_back(size);
    trace_->allocations.count.push_back(count);
    ++trace_->dumps[0].allocation_count;
  }

  Decoder Encode(const ReportOptions& options = {}) {
    Result<std::unique_ptr<TraceDatabase>> database =
        TraceDatabase::Create(std::move(trace_));
    EXPECT_TRUE(database.ok());
    Result<std::string> bytes = BeginAndEncode(*database.value(), options);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return Decoder(bytes.value());
  }

  void AddShape(ShapeKind kind, uint8_t log2, uint32_t callsite, int64_t size) {
    trace_->shapes.dump.push_back(0);
    trace_->shapes.callsite.push_back(callsite);
    trace_->shapes.kind.push_back(static_cast<uint8_t>(kind));
    trace_->shapes.log2.push_back(log2);
    trace_->shapes.count.push_back(3 * size);
    trace_->shapes.size.push_back(size);
    trace_->shapes.count_error.push_back(0.5);
    trace_->shapes.size_error.push_back(0.25);
    trace_->shapes.utid.push_back(kNoId);
  }

  // Of a process that has no heap unless it is process 0.
  void AddResident(uint32_t upid, int64_t ts, int64_t bytes) {
    trace_->counters.push_back(
        {.ts = ts, .upid = upid, .name = builder_.Intern("mem.rss"), .value = bytes});
  }

  std::unique_ptr<ImportedTrace> trace_;
  TraceBuilder builder_;
};

// In the one dump there is.
class ReportThreadsTest : public ReportDataTest {
 protected:
  // `size` bytes in `count` blocks at the last stack, half of them live.
  void AddToThread(int64_t tid, int64_t size, int64_t count) {
    const auto callsite = trace_->allocations.callsite.span().back();
    const uint32_t utid = tid == 0 ? kNoId : builder_.processes().ThreadOf(tid, 0);
    for (const ShapeKind kind : {ShapeKind::kAllocatedSize, ShapeKind::kLiveSize}) {
      const int64_t divisor = kind == ShapeKind::kLiveSize ? 2 : 1;
      AddShape(kind, 3, callsite, size / divisor);
      trace_->shapes.count[trace_->shapes.row_count() - 1] = count / divisor;
      trace_->shapes.utid[trace_->shapes.row_count() - 1] = utid;
    }
    AddShape(ShapeKind::kAge, 3, callsite, size);
    for (ThreadTotals& row : trace_->thread_totals) {
      if (row.utid == utid)
        row.alloc_size += size;
    }
    if (std::ranges::none_of(trace_->thread_totals,
                             [&](const auto& row) { return row.utid == utid; }))
      trace_->thread_totals.push_back({.utid = utid, .alloc_size = size});
  }
};

TEST_F(ReportThreadsTest, EachHasATreeOfWhatItHasAllocated) {
  Add({"main", "f"}, 100, 10);
  AddToThread(7, 40, 4);
  AddToThread(9, 60, 6);
  Add({"main", "g"}, 24, 2);
  AddToThread(9, 20, 2);
  AddToThread(0, 4, 2);
  const Decoder decoded = Encode();
  ASSERT_EQ(decoded.trees.size(), 3u);
  const nlohmann::json& trees = decoded.facts["trees"];
  EXPECT_FALSE(trees[0].contains("thread"));
  EXPECT_EQ(trees[1]["thread"], 9);
  EXPECT_EQ(Decoder::Folded(decoded.trees[1]), "main;f 30 3\nmain;g 10 1\n");
  EXPECT_EQ(decoded.trees[1][2].alloc_size, 60);
  EXPECT_EQ(decoded.trees[1][2].alloc_count, 6);
  EXPECT_EQ(trees[1]["has_errors"], true);
  EXPECT_EQ(trees[2]["thread"], 7);
  EXPECT_EQ(Decoder::Folded(decoded.trees[2]), "main;f 20 2\n");
}

TEST_F(ReportThreadsTest, OfOneAloneThereIsNoTree) {
  Add({"main"}, 100, 10);
  AddToThread(7, 40, 4);
  EXPECT_EQ(Encode().facts["trees"].size(), 1u);
}

TEST_F(ReportThreadsTest, OfTooManyThoseWithMostHaveOne) {
  Add({"main"}, 100, 10);
  for (int64_t tid = 1; tid <= 5; ++tid)
    AddToThread(tid, 10 * tid, 2);
  const nlohmann::json trees = Encode({.max_threads = 2}).facts["trees"];
  ASSERT_EQ(trees.size(), 3u);
  EXPECT_EQ(trees[1]["thread"], 5);
  EXPECT_EQ(trees[2]["thread"], 4);
}

// A tree of all is never made smaller for their sake.
TEST_F(ReportThreadsTest, TheyHaveTheRoomThatIsLeft) {
  for (int i = 0; i < 1500; ++i) {
    Add({"main", "f" + std::to_string(i)}, i + 1, 1);
    AddToThread(1 + i % 2, 10, 2);
  }
  const Decoder decoded = Encode({.max_nodes = 2000});
  ASSERT_EQ(decoded.trees.size(), 1u);
  EXPECT_EQ(decoded.trees[0].size(), 1502u);
  EXPECT_EQ(decoded.facts["trees"][0]["is_whole"], true);
}

// So that a new figure cannot be forgotten.
TEST_F(ReportDataTest, AllFiguresOfQualityThatAreNotZeroAreThere) {
  Add({"main"}, 10, 1);
  Quality& quality = trace_->qualities.emplace_back();
  trace_->dumps[0].quality = 0;
  for (size_t i = 1; i < kFigures.size(); ++i)
    quality.*kFigures[i].value = i;
  const nlohmann::json rows = Encode().facts["quality"]["rows"];
  ASSERT_EQ(rows.size(), kFigures.size() - 1);
  for (size_t i = 1; i < kFigures.size(); ++i)
    EXPECT_EQ(rows[i - 1], nlohmann::json({0, kFigures[i].name, i, kFigures[i].meaning,
                                           kFigures[i].is_fault}));
}

TEST_F(ReportDataTest, TreesAreThoseOfTheTraceTheLargerCalleesFirst) {
  Add({"main", "small"}, 10, 1);
  Add({"main", "large", "leaf"}, 300, 3);
  Add({"main", "large"}, 20, 2);
  Add({"other"}, 5, 1);
  const Decoder decoded = Encode({.version = "1", .files = {"a", "b"}});
  ASSERT_EQ(decoded.trees.size(), 1u);
  EXPECT_EQ(Decoder::Folded(decoded.trees[0]),
            "main;large 20 2\nmain;large;leaf 300 3\nmain;small 10 1\nother 5 1\n");
  EXPECT_EQ(decoded.facts["files"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(decoded.facts["trees"][0]["is_whole"], true);
}

// Of so many objects, each of a class of its own, which holds the next one; behind them
// one that nothing holds.
void AddHeapGraph(uint32_t length, TraceBuilder* builder) {
  HeapGraphTables& tables = builder->trace().heap_graph;
  const auto graph = static_cast<uint32_t>(tables.graphs.size());
  const auto first = static_cast<uint32_t>(tables.objects.graph.size());
  tables.graphs.push_back({.upid = builder->processes().ProcessOf(1),
                           .ts = 5 + graph,
                           .heap_size = {},
                           .first_object = first,
                           .object_count = length + 1});
  for (uint32_t i = 0; i <= length; ++i) {
    const bool is_held = i < length;
    tables.classes.push_back({.name = builder->Intern("Class" + std::to_string(i))});
    tables.objects.graph.push_back(graph);
    tables.objects.type.push_back(first + i);
    tables.objects.self_size.push_back(16);
    tables.objects.native_size.push_back(is_held ? 0 : 1);
    tables.objects.first_reference.push_back(first + i);
    tables.objects.reference_count.push_back(1);
    tables.objects.root_distance.push_back(is_held ? static_cast<int32_t>(i) : -1);
    tables.objects.root_type.push_back(i == 0 ? HeapRootType::kJniGlobal
                                              : HeapRootType::kNone);
    tables.objects.heap_type.push_back(HeapType::kApp);
    tables.references.owner.push_back(first + i);
    tables.references.owned.push_back(i + 1 < length ? first + i + 1 : kNoId);
    tables.references.field_name.push_back(kEmptyString);
    tables.references.field_type_name.push_back(kEmptyString);
    tables.references.deobfuscated_field_name.push_back(kNoId);
  }
}

// The row of `dumps` with this id, by column.
nlohmann::json DumpIn(const nlohmann::json& facts, int64_t id) {
  nlohmann::json found;
  const nlohmann::json& columns = facts["dumps"]["columns"];
  for (const nlohmann::json& row : facts["dumps"]["rows"]) {
    for (size_t i = 0; row[0] == id && i < row.size(); ++i)
      found[columns[i].get<std::string>()] = row[i];
  }
  return found;
}

TEST_F(ReportDataTest, AGraphOfAManagedHeapHasTwoTrees) {
  Add({"main"}, 10, 1);
  AddHeapGraph(2, &builder_);
  const Decoder decoded = Encode();
  ASSERT_EQ(decoded.trees.size(), 3u);
  EXPECT_EQ(Decoder::Folded(decoded.trees[0]), "main 10 1\n");
  for (const size_t tree : {1u, 2u})
    EXPECT_EQ(Decoder::Folded(decoded.trees.at(tree)),
              "Class0 16 1\nClass0;Class1 16 1\n");
  const nlohmann::json path = DumpIn(decoded.facts, decoded.facts["trees"][1]["dump"]);
  EXPECT_EQ(path["heap_name"], "managed, by path to root");
  EXPECT_EQ(path["live_size"], 32);
  EXPECT_EQ(path["live_count"], 2);
  EXPECT_EQ(path["unreachable_size"], 17);
  EXPECT_EQ(path["unreachable_count"], 2) << "with what it owns outside of the heap";
  EXPECT_EQ(path["is_complete"], 1);
  EXPECT_EQ(DumpIn(decoded.facts, decoded.facts["trees"][2]["dump"])["heap_name"],
            "managed, by dominator (retained)");
  EXPECT_FALSE(DumpIn(decoded.facts, 0).contains("unreachable_size"));
}

TEST_F(ReportDataTest, OfADeepGraphTheEndIsTakenTogether) {
  AddHeapGraph(2000, &builder_);
  const Decoder decoded = Encode();
  ASSERT_EQ(decoded.trees.size(), 2u);
  for (const Decoder::Tree& tree : decoded.trees) {
    EXPECT_EQ(tree.size(), 501u);
    EXPECT_EQ(tree.back().size, 1501 * 16);
  }
  EXPECT_EQ(decoded.facts["trees"][0]["is_folded"], true);
  EXPECT_EQ(decoded.facts["trees"][0]["is_whole"], true);
}

TEST_F(ReportDataTest, AGraphHasAsManyObjectsAsItsTrees) {
  AddHeapGraph(2, &builder_);
  trace_->heap_graph.objects.native_size[1] = 5;
  const Decoder decoded = Encode();
  for (const size_t tree : {0u, 1u}) {
    EXPECT_EQ(Decoder::Folded(decoded.trees.at(tree)),
              "Class0 16 1\nClass0;Class1 16 1\nClass0;Class1;[native] Class1 5 1\n");
    EXPECT_EQ(DumpIn(decoded.facts, decoded.facts["trees"][tree]["dump"])["live_count"],
              3);
  }
}

TEST_F(ReportDataTest, OtherHeapsLeaveRoomForTheLastGraph) {
  for (int i = 0; i < 4000; ++i)
    Add({"main", "f" + std::to_string(i)}, i + 1, 1);
  AddHeapGraph(2, &builder_);
  AddHeapGraph(3, &builder_);
  const Decoder decoded = Encode({.max_nodes = 3000, .max_trees = 3});
  ASSERT_EQ(decoded.trees.size(), 3u);
  EXPECT_LE(decoded.trees[0].size(), 1000u);
  for (const size_t tree : {1u, 2u})
    EXPECT_EQ(DumpIn(decoded.facts, decoded.facts["trees"][tree]["dump"])["ts"], 6);
}

// Buffers of `owners` classes, 100 bytes each, that main allocated; the first class has one
// byte more that another callsite which reads the same allocated.
void AddBuffers(uint32_t owners, TraceBuilder* builder) {
  HeapGraphTables& tables = builder->trace().heap_graph;
  tables.graphs.push_back({.upid = builder->processes().ProcessOf(1),
                           .ts = 5,
                           .first_object = 0,
                           .object_count = 2 * owners + 1});
  for (uint32_t i = 0; i <= 2 * owners; ++i) {
    const bool is_owner = i < owners;
    const std::string name = is_owner ? "Owner" + std::to_string(i) : "java.nio.Buffer";
    tables.classes.push_back({.name = builder->Intern(name)});
    tables.objects.graph.push_back(0);
    tables.objects.type.push_back(i);
    tables.objects.self_size.push_back(16);
    tables.objects.native_size.push_back(0);
    tables.objects.root_distance.push_back(is_owner ? 0 : 1);
    tables.objects.root_type.push_back(is_owner ? HeapRootType::kJniGlobal
                                                : HeapRootType::kNone);
    tables.objects.heap_type.push_back(HeapType::kApp);
  }
  for (uint32_t i = 0; i <= 2 * owners; ++i) {
    std::vector<uint32_t> owned;
    if (i < owners)
      owned.push_back(owners + i);
    if (i == 0)
      owned.push_back(2 * owners);
    tables.objects.first_reference.push_back(
        owned.empty() ? kNoId : static_cast<uint32_t>(tables.references.owner.size()));
    tables.objects.reference_count.push_back(static_cast<uint32_t>(owned.size()));
    for (const uint32_t object : owned) {
      tables.references.owner.push_back(i);
      tables.references.owned.push_back(object);
      tables.references.field_name.push_back(kEmptyString);
      tables.references.field_type_name.push_back(kEmptyString);
      tables.references.deobfuscated_field_name.push_back(kNoId);
    }
    if (i >= owners)
      tables.direct_buffers.push_back({.object = i,
                                       .address = i < 2 * owners ? 4096u : 8192u,
                                       .bytes = i < 2 * owners ? 100u : 1u});
  }
}

TEST_F(ReportDataTest, OfTooManyGroupsOfBuffersThoseThatAreThereAreWhole) {
  constexpr uint32_t kMost = 2000;
  Add({"main"}, 100, 1);
  AddBuffers(kMost + 5, &builder_);
  const auto main_at = [this](uint64_t place) {
    return builder_.InternCallsite(
        kNoId, builder_.InternFrame(builder_.Intern("main"), kNoId, place));
  };
  builder_.dumps().AddLiveBlock(main_at(0), 4096, 100);
  builder_.dumps().AddLiveBlock(main_at(8), 8192, 1);
  const Decoder decoded = Encode();
  const nlohmann::json& rows = decoded.facts["buffers"]["rows"];
  ASSERT_EQ(rows.size(), kMost);
  EXPECT_EQ(rows[0][1], "Owner0");
  EXPECT_EQ(rows[0][2], 2);
  EXPECT_EQ(rows[0][3], 101);
}

TEST_F(ReportDataTest, OfTooManyGraphsTheLastAreThereAndTheirNumberIsTold) {
  for (int i = 0; i < 3; ++i)
    AddHeapGraph(2, &builder_);
  const Decoder decoded = Encode({.max_trees = 5});
  std::vector<int64_t> times;
  for (const nlohmann::json& tree : decoded.facts["trees"])
    times.push_back(DumpIn(decoded.facts, tree["dump"])["ts"]);
  EXPECT_EQ(times, (std::vector<int64_t>{7, 7, 6, 6}));
  EXPECT_EQ(decoded.facts["counts"]["columns"][2], "graphs");
  EXPECT_EQ(decoded.facts["counts"]["rows"][0][2], 3);
}

TEST_F(ReportDataTest, FreedMemoryIsSubtractedAndStaysAllocated) {
  Add({"main"}, 100, 2);
  Add({"main"}, -60, -1);
  const Decoder decoded = Encode();
  const Decoder::Node& main = decoded.trees.at(0).at(1);
  EXPECT_EQ(main.size, 40);
  EXPECT_EQ(main.count, 1);
  EXPECT_EQ(main.alloc_size, 100);
  EXPECT_EQ(main.alloc_count, 2);
}

TEST_F(ReportDataTest, WhatIsTooSmallForTheReportIsTakenTogether) {
  for (int i = 0; i < 4000; ++i)
    Add({"main", "f" + std::to_string(i)}, i + 1, 1);
  const Decoder decoded = Encode({.max_nodes = 3000});
  const Decoder::Tree& tree = decoded.trees.at(0);
  EXPECT_LE(tree.size(), 3000u);
  int64_t size = 0;
  for (const Decoder::Node& node : tree)
    size += node.size;
  EXPECT_EQ(size, 4000 * 4001 / 2);
  EXPECT_EQ(tree.back().name, "(rest)");
  EXPECT_EQ(decoded.facts["trees"][0]["is_whole"], false);
}

TEST_F(ReportDataTest, AnyBytesCanBeNames) {
  const std::string name = "</script>\xff\n" + std::string(1 << 20, 'x');
  Add({name}, 1, 1);
  EXPECT_EQ(Encode().trees.at(0).at(1).name, name);
}

TEST_F(ReportDataTest, TooLongNamesAreAnError) {
  Add({"main", std::string(3 << 20, 'x')}, 1, 1);
  Result<std::unique_ptr<TraceDatabase>> database =
      TraceDatabase::Create(std::move(trace_));
  ASSERT_TRUE(database.ok());
  const Result<std::string> bytes =
      BeginAndEncode(*database.value(), {.max_text_bytes = 2 << 20});
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().message(),
            "cannot make the report: the names of its functions are longer than 2 MiB "
            "together; heap_profile query reads the file");
}

TEST_F(ReportDataTest, FunctionsOfAllocatorsAreMarked) {
  Add({"main", "std::vector<int>::push_back(int&&)"}, 1, 1);
  const Decoder decoded = Encode();
  for (size_t i = 0; i < decoded.functions.size(); ++i)
    EXPECT_EQ(decoded.flags[i], decoded.functions[i].starts_with("std::") ? 1u : 0u);
}

TEST_F(ReportDataTest, OfTooManyDumpsTheLastAndTheNamedAreThere) {
  const StringId names[] = {builder_.Intern("a"), builder_.Intern("b")};
  constexpr uint32_t kDumps = 50'001;
  for (uint32_t id = 0; id < kDumps; ++id) {
    ImportedDump& dump = trace_->dumps.emplace_back();
    dump.heap_name = names[id == 3 ? 1 : 0];
    dump.ts = id;
  }
  trace_->dumps[4].label = builder_.Intern("mark");
  const Decoder decoded = Encode();
  std::vector<uint32_t> ids;
  for (const nlohmann::json& row : decoded.facts["dumps"]["rows"])
    ids.push_back(row[0].get<uint32_t>());
  EXPECT_LE(ids.size(), 20'000u);
  EXPECT_GE(ids.size(), 15'000u);
  for (const uint32_t id : {3u, 4u, kDumps - 1})
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 1) << id;
  EXPECT_EQ(decoded.facts["trees"][0]["dump"], kDumps - 1);
  EXPECT_EQ(decoded.facts["trees"][1]["dump"], 3);
  for (const nlohmann::json& tree : decoded.facts["trees"])
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tree["dump"].get<uint32_t>()), 1);
}

TEST_F(ReportDataTest, MemoryIsThatOfProcessesWithHeaps) {
  Add({"main"}, 1, 1);
  for (uint32_t upid = 1; upid < 1000; ++upid) {
    for (int64_t ts = 0; ts < 80; ++ts)
      AddResident(upid, ts, 1);
  }
  AddResident(0, 100, 42);
  const Decoder decoded = Encode();
  EXPECT_EQ(decoded.facts["memory"]["rows"],
            nlohmann::json::parse(R"([[100, 0, "mem.rss", 42]])"));
}

TEST_F(ReportDataTest, OfTooMuchMemoryTheLastIsThereAndTheRestIsSpread) {
  Add({"main"}, 1, 1);
  constexpr int64_t kRows = 100'001;
  for (int64_t ts = 0; ts < kRows; ++ts)
    AddResident(0, ts, ts);
  const Decoder decoded = Encode();
  const nlohmann::json& rows = decoded.facts["memory"]["rows"];
  ASSERT_EQ(rows.size(), kRows / 3 + 1u);
  EXPECT_EQ(rows[0][0], kRows - 1);
  for (size_t i = 1; i < rows.size(); ++i)
    ASSERT_EQ(rows[i][0], static_cast<int64_t>(3 * i - 2));
  EXPECT_EQ(decoded.facts["counts"]["rows"][0][1], kRows);
}

TEST_F(ReportDataTest, SumsOfBlocksAreThoseOfSql) {
  const uint32_t mapping = builder_.InternMapping({});
  std::vector<uint32_t> callsites;
  for (const char* name : {"a", "b", "c", "d"}) {
    const uint32_t caller = builder_.InternCallsite(
        kNoId, builder_.InternFrame(builder_.Intern(name), mapping, 0));
    callsites.push_back(builder_.InternCallsite(
        caller, builder_.InternFrame(builder_.Intern("malloc"), mapping, 0)));
  }
  Add({"main"}, 1, 1);
  for (uint8_t log2 = 0; log2 < 4; ++log2) {
    for (uint32_t row = 0; row < 20; ++row)
      AddShape(static_cast<ShapeKind>(row % 5), log2, callsites[row % 4],
               10 * row + log2 + 1);
  }
  Result<std::unique_ptr<TraceDatabase>> database =
      TraceDatabase::Create(std::move(trace_));
  ASSERT_TRUE(database.ok());
  const auto rows_of = [&database](const std::string& sql) {
    JsonRows rows;
    EXPECT_TRUE(database.value()->Run(sql, rows).ok());
    return rows.result;
  };
  const auto facts = ReportFacts(*database.value());
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts.value()["histogram"],
            rows_of("SELECT dump_id, kind, low, high, sum(count) AS count, sum(size) AS "
                    "size, sum(count_error * count_error) AS variance FROM "
                    "heap_profile_histogram GROUP BY 1, 2, 3 ORDER BY instr("
                    "'allocated_size lifetime temporary live_size age', kind), low"));
  EXPECT_EQ(facts.value()["temporary"],
            rows_of("SELECT dump_id, kind, low, count, size, count_error, (SELECT f.name "
                    "FROM stack_profile_callsite c JOIN stack_profile_callsite p ON p.id "
                    "= c.parent_id JOIN stack_profile_frame f ON f.id = p.frame_id WHERE "
                    "c.id = callsite_id) AS stack FROM heap_profile_histogram WHERE kind "
                    "= 'temporary' ORDER BY count DESC"));
  EXPECT_EQ(facts.value()["size_holders"],
            rows_of("SELECT dump_id, kind, low, count, size, count_error, (SELECT f.name "
                    "FROM stack_profile_callsite c JOIN stack_profile_callsite p ON p.id "
                    "= c.parent_id JOIN stack_profile_frame f ON f.id = p.frame_id WHERE "
                    "c.id = callsite_id) AS stack FROM (SELECT *, row_number() OVER "
                    "(PARTITION BY kind, low ORDER BY size DESC) AS place FROM "
                    "heap_profile_histogram WHERE kind IN ('allocated_size', "
                    "'live_size')) WHERE place <= 3 ORDER BY size DESC"));
}

// As call trees name them: what was inlined is there, and what linkers call it is not.
TEST_F(ReportDataTest, StacksOfBlocksHaveTheNamesOfTheirFunctions) {
  const uint32_t lib = builder_.InternMapping({.name = builder_.Intern("/lib/libx.so")});
  const uint32_t outer = builder_.InternFrame(builder_.Intern(""), lib, 1);
  const uint32_t inner = builder_.InternFrame(builder_.Intern(""), lib, 2);
  const StringId file = builder_.Intern("x.cc");
  trace_->frames.symbol_set[inner] =
      builder_.AddSymbol(builder_.AddSymbol(kNoId, builder_.Intern("inlined"), file, 1),
                         builder_.Intern("_ZN1x4makeEv"), file, 2);
  uint32_t callsite = builder_.InternCallsite(kNoId, outer);
  callsite = builder_.InternCallsite(callsite, inner);
  callsite = builder_.InternCallsite(
      callsite, builder_.InternFrame(builder_.Intern("malloc"), lib, 3));
  Add({"main"}, 1, 1);
  AddShape(ShapeKind::kTemporary, 0, callsite, 10);
  EXPECT_EQ(Encode().facts["temporary"]["rows"][0][6], "inlined←x::make()←[libx.so]");
}

TEST_F(ReportDataTest, IdleMemoryHasItsSumAndThoseWhoHoldMostOfIt) {
  Add({"main", "cool", "malloc"}, 100, 1);
  Add({"main", "cold", "malloc"}, 300, 1);
  Add({"main", "hot", "malloc"}, 200, 1);
  trace_->dumps[0].idle_ts = 3;
  const std::vector<uint32_t> callsites(trace_->allocations.callsite.span().begin(),
                                        trace_->allocations.callsite.span().end());
  builder_.dumps().GoOn(0);
  builder_.dumps().AddEstimate(callsites[0], {.idle_bytes = 40});
  builder_.dumps().AddEstimate(callsites[1], {.idle_bytes = 250});
  builder_.dumps().AddEstimate(callsites[2], {.idle_bytes = 0});
  const nlohmann::json facts = Encode().facts;
  EXPECT_EQ(facts["idle_sums"]["rows"], nlohmann::json({{0, 290.0}}));
  EXPECT_EQ(facts["idle"]["rows"],
            nlohmann::json({{0, 250, "cold←main"}, {0, 40, "cool←main"}}));
}

TEST_F(ReportDataTest, OfIdleMemoryThereIsNothingInOtherFiles) {
  Add({"main"}, 1, 1);
  const nlohmann::json facts = Encode().facts;
  EXPECT_TRUE(facts["idle_sums"]["rows"].empty());
  EXPECT_TRUE(facts["idle"]["rows"].empty());
}

// Random stacks of few functions at several addresses, in two dumps; some memory is freed.
void AddRandomStacks(TraceBuilder& builder) {
  std::mt19937 random(3);
  const char* const names[] = {"main", "parse", "std::vector<int>::push_back", "read"};
  ImportedTrace& trace = builder.trace();
  std::vector<std::vector<uint32_t>> stacks(3000);
  for (std::vector<uint32_t>& stack : stacks) {
    do {
      const size_t name = random() % std::size(names);
      const uint32_t frame =
          builder.InternFrame(builder.Intern(names[name]), kNoId, random() % 3);
      if (trace.frames.symbol_set[frame] == kNoId && name == 1)
        trace.frames.symbol_set[frame] = builder.AddSymbol(
            builder.AddSymbol(kNoId, builder.Intern("inlined"), builder.Intern("a.h"),
                              random() % 2 == 0 ? 1u : 2u),
            builder.Intern(names[name]), builder.Intern("a.cc"), 3);
      stack.push_back(frame);
    } while (random() % 5 != 0);
    if (random() % 2 == 0)
      stack.push_back(builder.InternFrame(builder.Intern("malloc"), kNoId, 0));
  }
  for (const int64_t ts : {10, 20}) {
    ImportedDump dump;
    dump.upid = builder.processes().ProcessOf(7);
    dump.heap_name = builder.Intern("libc.malloc");
    dump.ts = ts;
    builder.dumps().Begin(dump);
    for (const std::vector<uint32_t>& stack : stacks) {
      if (random() % 3 == 0)
        continue;
      const uint32_t id = builder.InternWhole(stack);
      builder.dumps().AddAllocation(id, 2, static_cast<int64_t>(1 + random() % 1000));
      if (random() % 4 == 0)
        builder.dumps().AddAllocation(id, -1, -static_cast<int64_t>(random() % 1000));
      builder.dumps().AddEstimate(id,
                                  {.live_bytes_error = static_cast<double>(random() % 90),
                                   .live_count_error = 1,
                                   .allocated_bytes_error = 2,
                                   .alloc_count_error = 3,
                                   .peak_bytes = static_cast<int64_t>(random() % 50),
                                   .peak_count = 1});
      builder.dumps().AddShape(id, {.kind = ShapeKind::kTemporary,
                                    .log2 = 0,
                                    .count = static_cast<int64_t>(random()),
                                    .size = 5});
    }
  }
}

Decoder ReportOfRandomStacks(bool are_whole, const ReportOptions& options) {
  auto trace = std::make_unique<ImportedTrace>();
  auto builder = std::make_unique<TraceBuilder>(trace.get());
  if (are_whole)
    builder->ReadWholeStacks();
  AddRandomStacks(*builder);
  EXPECT_EQ(trace->stacks.row_count() > 0, are_whole);
  Result<std::unique_ptr<TraceDatabase>> database =
      TraceDatabase::Create(std::move(trace), {std::move(builder), {}});
  EXPECT_TRUE(database.ok());
  Result<std::string> bytes = BeginAndEncode(*database.value(), options);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return Decoder(bytes.value());
}

// Each node with its callers and all that is told of it.
std::vector<std::string> NodesOf(const Decoder::Tree& tree) {
  std::vector<std::string> lines;
  std::vector<std::string> path;
  for (const Decoder::Node& node : tree) {
    path.resize(node.depth);
    path.push_back(node.name);
    std::string line;
    for (const std::string& name : path)
      line += name + ";";
    for (const int64_t figure :
         {node.size, node.count, node.alloc_size, node.alloc_count, node.error})
      line += " " + std::to_string(figure);
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(WholeStacksTest, GiveTheReportOfCallsites) {
  const Decoder want = ReportOfRandomStacks(false, {});
  const Decoder got = ReportOfRandomStacks(true, {});
  EXPECT_EQ(got.facts, want.facts);
  ASSERT_EQ(got.trees.size(), want.trees.size());
  EXPECT_EQ(got.trees.size(), 3u) << "the end, the peak before it, the first dump";
  for (size_t i = 0; i < want.trees.size(); ++i)
    EXPECT_EQ(NodesOf(got.trees[i]), NodesOf(want.trees[i]));
}

TEST(WholeStacksTest, AreCancelled) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  builder.ReadWholeStacks();
  AddRandomStacks(builder);
  CancelFlag cancelled = false;
  Result<std::optional<StackOrder>> order = StackOrder::Of(trace, cancelled);
  ASSERT_TRUE(order.ok());
  StackOrder& stacks = *order.value();
  const Result<StackTree> tree = StackTree::Of(stacks, ValuesAt(trace, 0), cancelled);
  ASSERT_TRUE(tree.ok());
  cancelled = true;
  ReportFunctions functions(trace);
  std::string out;
  EXPECT_EQ(tree.value().AppendTo({}, functions, out).status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(StackTree::Of(stacks, ValuesAt(trace, 0), cancelled).status().code(),
            StatusCode::kUnavailable);
}

TEST(WholeStacksTest, WhatIsTooSmallIsTakenTogether) {
  const Decoder whole = ReportOfRandomStacks(true, {});
  const Decoder cut = ReportOfRandomStacks(true, {.max_nodes = 3000});
  const Decoder::Tree& tree = cut.trees[0];
  EXPECT_EQ(cut.facts["trees"][0]["is_whole"], false);
  EXPECT_LE(tree.size(), 1500u);
  EXPECT_GT(tree.size(), 400u);
  Decoder::Node sum{};
  for (const Decoder::Node& node : tree) {
    sum.size += node.size;
    sum.alloc_count += node.alloc_count;
  }
  for (const Decoder::Node& node : whole.trees[0]) {
    sum.size -= node.size;
    sum.alloc_count -= node.alloc_count;
  }
  EXPECT_EQ(sum.size, 0);
  EXPECT_EQ(sum.alloc_count, 0);
}

TEST_F(ReportDataTest, AnEmptyTraceIsEmpty) {
  const Decoder decoded = Encode();
  EXPECT_TRUE(decoded.trees.empty());
  EXPECT_TRUE(decoded.facts["dumps"]["rows"].empty());
}

}  // namespace
}  // namespace heapprofd
