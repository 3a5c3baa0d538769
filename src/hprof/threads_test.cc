#include "hprof/threads.h"

#include <gtest/gtest.h>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

class ThreadsTest : public testing::TestWithParam<uint32_t> {
 protected:
  std::string Ids(std::initializer_list<uint64_t> ids) const {
    std::string text;
    for (const uint64_t id : ids)
      text += dump_.Id(id);
    return text;
  }

  // A frame of the class with this number.
  void AddFrame(uint64_t id, uint64_t method, uint64_t source, uint32_t line) {
    dump_.Record(kStackFrame, Ids({id, method, 0, source}) + TestDump::Number(1) +
                                  TestDump::Number(line));
  }

  void AddStack(uint32_t thread, std::initializer_list<uint64_t> frames, uint32_t count) {
    dump_.Record(kStackTrace, TestDump::Number(50 + thread) + TestDump::Number(thread) +
                                  TestDump::Number(count) + Ids(frames));
  }

  std::string Local(uint64_t id, uint32_t thread, uint32_t frame) const {
    return dump_.Root(kRootJavaFrame, id,
                      TestDump::Number(thread) + TestDump::Number(frame));
  }

  // Thread 100 is number 7, its name is String 200 with array 300.
  void AddHeap(const std::string& roots) {
    dump_.String(1, "name").String(2, "value").String(3, "run").String(4, "A.java");
    dump_.Class(20, "java/lang/Thread").Class(30, "java/lang/String");
    dump_.Segment(
        dump_.ClassDump(20, 0, {{1, kObject}}) + dump_.ClassDump(30, 0, {{2, kObject}}) +
        dump_.ClassDump(21, 20, {{1, kObject}}) +
        dump_.Root(kRootThreadObject, 100, TestDump::Number(7) + TestDump::Number(57)) +
        roots + dump_.Instance(100, 21, Ids({0, 200})) +
        dump_.Instance(200, 30, Ids({300})) + dump_.Bytes(300, "worker 1"));
    dump_.End();
  }

  std::vector<HeapThread> Find() {
    Result<DumpFile> file = DumpFile::Read(dump_.bytes(), "test");
    EXPECT_TRUE(file.ok());
    Result<HeapGraph> heap = LoadGraph(file.value(), file.value().dumps().at(0));
    EXPECT_TRUE(heap.ok());
    ids_.clear();
    for (uint32_t i = 0; i < heap.value().graph.object_count(); ++i)
      ids_.push_back(heap.value().ids.IdOf(i));
    std::vector<HeapThread> threads =
        ThreadsOf(file.value(), file.value().dumps()[0], heap.value());
    methods_.clear();
    for (const HeapThread& thread : threads) {
      for (const ThreadFrame& frame : thread.frames)
        methods_.push_back(file.value().names().DescribeFrame(frame.id));
    }
    return threads;
  }

  TestDump dump_{GetParam()};
  std::vector<uint64_t> ids_;  // by object
  std::vector<std::string> methods_;
};

INSTANTIATE_TEST_SUITE_P(IdBytes, ThreadsTest, testing::Values(4, 8));

TEST_P(ThreadsTest, AThreadHasItsNameAndItsStackWithWhatEachFrameHolds) {
  AddFrame(500, 3, 4, 12);
  AddFrame(501, 3, 4, static_cast<uint32_t>(-3));
  AddFrame(502, 3, 0, 5);
  AddStack(7, {501, 500, 502}, 3);
  AddHeap(Local(200, 7, 1) + Local(200, 7, 1) + Local(300, 7, 1) + Local(300, 7, 9) +
          Local(300, 8, 0));
  const std::vector<HeapThread> threads = Find();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(ids_[threads[0].object], 100u);
  EXPECT_EQ(threads[0].name, "worker 1");  // not the field of this name in a subclass
  ASSERT_EQ(threads[0].frames.size(), 3u);
  EXPECT_NE(methods_.at(0).find(".run(Native Method)"), std::string::npos);
  EXPECT_NE(methods_.at(1).find(".run(A.java:12)"), std::string::npos);
  EXPECT_NE(methods_.at(2).find(".run(Unknown Source)"), std::string::npos);
  ASSERT_EQ(threads[0].frames[1].locals.size(), 2u);
  EXPECT_EQ(ids_[threads[0].frames[1].locals[0]], 200u);
  ASSERT_EQ(threads[0].other_locals.size(), 1u);  // there is no frame 9
  EXPECT_EQ(ids_[threads[0].other_locals[0]], 300u);
}

TEST_P(ThreadsTest, AStackThatIsCutOrRefersToNothingIsReadAsFarAsItGoes) {
  AddStack(7, {500, 501}, UINT32_MAX);
  AddHeap("");
  const std::vector<HeapThread> threads = Find();
  ASSERT_EQ(threads.size(), 1u);
  ASSERT_EQ(threads[0].frames.size(), 2u);
  EXPECT_EQ(methods_.at(0), "(unknown)");
}

TEST_P(ThreadsTest, AThreadThatMakesAnOutOfMemoryErrorIsTold) {
  dump_.String(5, "<init>").String(6, "java/lang/OutOfMemoryError");
  dump_.Record(kLoadClass,
               TestDump::Number(1) + dump_.Id(60) + TestDump::Number(0) + dump_.Id(6));
  AddFrame(500, 5, 0, 48);
  AddFrame(501, 3, 0, 5);
  AddStack(7, {500, 501}, 2);
  AddStack(8, {501, 500}, 2);
  AddHeap(dump_.Root(kRootThreadObject, 200, TestDump::Number(8) + TestDump::Number(58)));
  const std::vector<HeapThread> threads = Find();
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_TRUE(threads[0].ran_out_of_memory);
  EXPECT_FALSE(threads[1].ran_out_of_memory);
}

TEST_P(ThreadsTest, WithoutStacksThreadsHaveNames) {
  AddHeap("");
  const std::vector<HeapThread> threads = Find();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].name, "worker 1");
  EXPECT_TRUE(threads[0].frames.empty());
}

}  // namespace
}  // namespace heapprofd::hprof
