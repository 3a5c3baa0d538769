#include "export/heap_graph_pprof.h"

#include <gtest/gtest.h>

#include "export/decoded_profile.h"
#include "import/perfetto/test_traces.h"

namespace heapprofd {
namespace {

std::vector<EncodedProfile> Convert(const ImportedTrace& trace,
                                    const PprofSelection& selection = {}) {
  std::vector<EncodedProfile> profiles;
  EXPECT_TRUE(ConvertHeapGraphsToPprof(trace, selection, [&](const DumpProfile& profile) {
                profiles.push_back(Encoded(profile));
                return Status();
              }).ok());
  return profiles;
}

TEST(HeapGraphPprofTest, ReachableObjectsHangOnTheirShortestPathFromARoot) {
  const auto test = ReadFixture("heap_graph");
  const auto profiles = Convert(test->trace);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].pid, 12);
  const Decoded profile(profiles[0].bytes);
  EXPECT_EQ(profile.types, (std::vector<std::string>{"objects", "space"}));
  EXPECT_EQ(profile.default_type, "space");
  std::set<std::string> samples;
  for (size_t i = 0; i < profile.samples.size(); ++i)
    samples.insert(profile.Sample(i));
  EXPECT_EQ(samples,
            (std::set<std::string>{
                "com.example.Base [ROOT_VM_INTERNAL] 1 16",
                "java.lang.ref.WeakReference [ROOT_JNI_GLOBAL] 1 32",
                "com.example.Node [ROOT_JNI_GLOBAL] 1 24",
                "com.example.Node;com.example.Node [ROOT_JNI_GLOBAL] 1 24",
                "byte[];com.example.Node;com.example.Node [ROOT_JNI_GLOBAL] 1 1000"}));
}

TEST(HeapGraphPprofTest, MemoryOutsideTheHeapHangsBelowTheObjectThatOwnsIt) {
  const auto test = ReadFixture("heap_graph");
  test->trace.heap_graph.objects.native_size[0] = 123'456;
  const auto profiles = Convert(test->trace);
  ASSERT_EQ(profiles.size(), 1u);
  const Decoded profile(profiles[0].bytes);
  std::set<std::string> samples;
  for (size_t i = 0; i < profile.samples.size(); ++i)
    samples.insert(profile.Sample(i));
  EXPECT_TRUE(samples.contains("com.example.Node [ROOT_JNI_GLOBAL] 1 24"));
  EXPECT_TRUE(
      samples.contains("[native] com.example.Node [ROOT_JNI_GLOBAL];"
                       "com.example.Node [ROOT_JNI_GLOBAL] 1 123456"));
}

TEST(HeapGraphPprofTest, PidAndTimeSelectAndTheReasonNamesWhatThereIs) {
  const auto test = ReadFixture("heap_graph");
  EXPECT_EQ(Convert(test->trace, {.pid = 12, .timestamps = {600}}).size(), 1u);
  const PprofSelection other_pid{.pid = 13, .timestamps = {}};
  EXPECT_EQ(Convert(test->trace, other_pid).size(), 0u);
  EXPECT_EQ(ReasonForNoHeapGraph(test->trace, other_pid),
            "the trace has no dump of --pid 13; it has dumps of 12");
  const PprofSelection other_time{.pid = {}, .timestamps = {7}};
  EXPECT_EQ(Convert(test->trace, other_time).size(), 0u);
  EXPECT_EQ(ReasonForNoHeapGraph(test->trace, other_time),
            "the trace has no dump at --timestamps 7; it has dumps at 600");
  EXPECT_NE(ReasonForNoHeapGraph(ReadFixture("java")->trace, {}).find("no Java heap"),
            std::string::npos);
}

TEST(HeapGraphPprofTest, AHeapWithoutRootsHasAnEmptyProfileAndIsSaidTo) {
  const auto test = ReadFixture("heap_graph");
  for (HeapRootType& type : test->trace.heap_graph.objects.root_type)
    type = HeapRootType::kNone;
  std::string note;
  size_t samples = 1;
  EXPECT_TRUE(ConvertHeapGraphsToPprof(test->trace, {}, [&](const DumpProfile& profile) {
                note = profile.note;
                samples = Decoded(Encoded(profile).bytes).samples.size();
                return Status();
              }).ok());
  EXPECT_EQ(note,
            "the Java heap of pid 12 at 600 has no object that a root reaches: its "
            "profile is empty");
  EXPECT_EQ(samples, 0u);
}

// A list, each element of which holds the next one.
TEST(HeapGraphPprofTest, PathsThatAreTooLongAreCutAndLoseNothing) {
  constexpr uint32_t kLength = 100'000;
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  HeapGraphTables& tables = trace.heap_graph;
  tables.classes.push_back({.name = builder.Intern("Element")});
  tables.graphs.push_back({.upid = builder.processes().ProcessOf(1),
                           .ts = 5,
                           .heap_size = {},
                           .object_count = kLength});
  for (uint32_t i = 0; i < kLength; ++i) {
    tables.objects.graph.push_back(0);
    tables.objects.type.push_back(0);
    tables.objects.self_size.push_back(16);
    tables.objects.native_size.push_back(0);
    tables.objects.first_reference.push_back(i);
    tables.objects.reference_count.push_back(1);
    tables.objects.root_distance.push_back(static_cast<int32_t>(i));
    tables.objects.root_type.push_back(i == 0 ? HeapRootType::kJniGlobal
                                              : HeapRootType::kNone);
    tables.objects.heap_type.push_back(HeapType::kApp);
    tables.references.owner.push_back(i);
    tables.references.owned.push_back(i + 1 < kLength ? i + 1 : kNoId);
    tables.references.field_name.push_back(kEmptyString);
    tables.references.field_type_name.push_back(kEmptyString);
    tables.references.deobfuscated_field_name.push_back(kNoId);
  }
  const auto profiles = Convert(trace);
  ASSERT_EQ(profiles.size(), 1u);
  const Decoded profile(profiles[0].bytes);
  int64_t objects = 0;
  size_t longest = 0;
  for (const auto& [stack, values] : profile.samples) {
    objects += values.at(0);
    longest = std::max(longest, stack.size());
  }
  EXPECT_EQ(objects, kLength);
  EXPECT_EQ(longest, 500u);
  EXPECT_TRUE(
      profile.comments.contains("paths longer than 500 references are cut there"));
}

}  // namespace
}  // namespace heapprofd
