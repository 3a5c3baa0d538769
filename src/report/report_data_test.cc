#include "report/report_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/byte_reader.h"
#include "import/perfetto/test_traces.h"
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
    const std::vector<uint64_t> steps = Column(count);
    const std::vector<uint64_t> rows = Column(count);
    std::array<std::vector<uint64_t>, 5> columns;
    for (std::vector<uint64_t>& column : columns)
      column = Column(count);
    Tree& tree = trees.emplace_back();
    for (size_t i = 0; i < count; ++i)
      tree.push_back({i == 0 ? 0 : tree[i - 1].depth + 1 - steps[i],
                      rows[i] == 1 ? "(rest)" : functions.at(rows[i]),
                      Signed(columns[0][i]), Signed(columns[1][i]), Signed(columns[2][i]),
                      Signed(columns[3][i]), static_cast<int64_t>(columns[4][i])});
  }

  ByteReader reader_;
};

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
    Result<std::string> bytes = EncodeReport(*database.value(), options);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return Decoder(bytes.value());
  }

  // Of a process that has no heap unless it is process 0.
  void AddResident(uint32_t upid, int64_t ts, int64_t bytes) {
    trace_->counters.push_back(
        {.ts = ts, .upid = upid, .name = builder_.Intern("mem.rss"), .value = bytes});
  }

  std::unique_ptr<ImportedTrace> trace_;
  TraceBuilder builder_;
};

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
      EncodeReport(*database.value(), {.max_text_bytes = 2 << 20});
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

TEST_F(ReportDataTest, AnEmptyTraceIsEmpty) {
  const Decoder decoded = Encode();
  EXPECT_TRUE(decoded.trees.empty());
  EXPECT_TRUE(decoded.facts["dumps"]["rows"].empty());
}

}  // namespace
}  // namespace heapprofd
