#include "export/heap_graph_packets.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "import/perfetto/test_traces.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

// Objects by their places and what they refer to, a line each.
std::string Lines(const ImportedTrace& trace) {
  const HeapGraphTables& tables = trace.heap_graph;
  const HeapObjectTable& objects = tables.objects;
  std::string text;
  for (uint32_t row = 0; row < objects.row_count(); ++row) {
    const HeapClass& type = tables.classes[objects.type[row]];
    text += std::to_string(row) + " " + std::string(trace.Text(type.name)) + " " +
            NameOf(type.kind) + " " + std::to_string(objects.self_size[row]) + " " +
            NameOf(objects.root_type[row]) + " " +
            std::to_string(objects.root_distance[row]);
    if (type.superclass != kNoId)
      text += " < " + std::string(trace.Text(tables.classes[type.superclass].name));
    const uint64_t first = objects.first_reference[row];
    for (uint64_t at = first; at < first + objects.reference_count[row]; ++at)
      text += " " + std::string(trace.Text(tables.references.field_name[at])) + "=" +
              std::to_string(tables.references.owned[at]);
    text += "\n";
  }
  return text;
}

// Each object refers to the next one and the one after that.
void AddChain(uint32_t length, TraceBuilder* builder) {
  HeapGraphTables& tables = builder->trace().heap_graph;
  HeapClass top;
  top.name = builder->Intern("Top");
  HeapClass node;
  node.name = builder->Intern("a.Node");
  node.superclass = 0;
  node.kind = HeapClassKind::kNormal;
  tables.classes = {top, node};
  const StringId names[] = {builder->Intern("a.Node.next"),
                            builder->Intern("<class loader>")};
  for (uint32_t row = 0; row < length; ++row) {
    tables.objects.graph.push_back(0);
    tables.objects.type.push_back(1);
    tables.objects.self_size.push_back(24 + row);
    tables.objects.native_size.push_back(0);
    tables.objects.first_reference.push_back(kNoId);
    tables.objects.reference_count.push_back(0);
    tables.objects.root_distance.push_back(-1);
    tables.objects.root_type.push_back(row == 0   ? HeapRootType::kJniGlobal
                                       : row == 5 ? HeapRootType::kStickyClass
                                                  : HeapRootType::kNone);
    tables.objects.heap_type.push_back(HeapType::kUnknown);
    for (uint32_t i = 0; i < 2 && row + i + 1 < length; ++i) {
      if (i == 0)
        tables.objects.first_reference[row] =
            static_cast<uint32_t>(tables.references.row_count());
      ++tables.objects.reference_count[row];
      tables.references.owner.push_back(row);
      tables.references.owned.push_back(row + i + 1);
      tables.references.field_name.push_back(names[i]);
      tables.references.field_type_name.push_back(kNoId);
      tables.references.deobfuscated_field_name.push_back(kNoId);
    }
  }
  SetRootDistances(0, kNoId, &tables);
  ImportedHeapGraph graph;
  graph.object_count = length;
  tables.graphs.push_back(graph);
}

TEST(HeapGraphPacketsTest, AGraphReadBackIsTheSame) {
  for (const uint32_t length : {0u, 1u, 10u, 100'000u}) {  // the last: several packets
    ImportedTrace trace;
    TraceBuilder builder(&trace);
    AddChain(length, &builder);
    std::string bytes;
    size_t packets = 0;
    const Status status = WriteHeapGraph(
        trace, 0, {.pid = 12, .ts = 600, .sequence_id = 7},
        [&](const std::string& packet) {
          protozero::pbf_writer(bytes).add_message(field::Trace::kPacket, packet);
          ++packets;
          return Status();
        });
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(packets > 1, length == 100'000);
    const std::unique_ptr<TestTrace> read = ReadBytes(bytes);
    ASSERT_EQ(read->trace.heap_graph.graphs.size(), 1u);
    const ImportedHeapGraph& graph = read->trace.heap_graph.graphs[0];
    EXPECT_EQ(graph.ts, 600);
    EXPECT_EQ(read->trace.processes[graph.upid].pid, 12);
    EXPECT_FALSE(graph.truncated);
    EXPECT_EQ(Lines(read->trace), Lines(trace));
  }
}

TEST(HeapGraphPacketsTest, DirectBuffersAreThoseOfTheirObjects) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  AddChain(5, &builder);
  trace.heap_graph.direct_buffers = {
      {4, UINT64_MAX, 7}, {2, 4096, UINT64_MAX}, {5, 1, 1}};
  std::string bytes;
  ASSERT_TRUE(WriteHeapGraph(trace, 0, {.pid = 12}, [&](const std::string& packet) {
                protozero::pbf_writer(bytes).add_message(field::Trace::kPacket, packet);
                return Status();
              }).ok());
  const std::unique_ptr<TestTrace> read = ReadBytes(bytes);
  const std::vector<HeapDirectBuffer>& buffers = read->trace.heap_graph.direct_buffers;
  ASSERT_EQ(buffers.size(), 2u);  // the last one is of no object of this graph
  EXPECT_EQ(buffers[0].object, 4u);
  EXPECT_EQ(buffers[0].address, UINT64_MAX);
  EXPECT_EQ(buffers[0].bytes, 7u);
  EXPECT_EQ(buffers[1].object, 2u);
  EXPECT_EQ(buffers[1].bytes, UINT64_MAX);
}

TEST(HeapGraphPacketsTest, AnErrorEndsIt) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  AddChain(100'000, &builder);
  size_t packets = 0;
  const Status status = WriteHeapGraph(trace, 0, {}, [&](const std::string&) {
    ++packets;
    return Status(StatusCode::kIo, "full");
  });
  EXPECT_EQ(status.message(), "full");
  EXPECT_EQ(packets, 1u);
}

}  // namespace
}  // namespace heapprofd
