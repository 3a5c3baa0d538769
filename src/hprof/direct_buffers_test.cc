#include "hprof/direct_buffers.h"

#include <gtest/gtest.h>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

class DirectBuffersTest : public testing::TestWithParam<uint32_t> {
 protected:
  // A buffer with the fields of JDK 17, and a class of the same fields and another name.
  void Begin() {
    dump_.String(1, "address").String(2, "capacity").String(3, "att").String(4, "fd");
    dump_.Class(20, "java/nio/DirectByteBuffer")
        .Class(30, "java/nio/Buffer")
        .Class(40, "Mine");
    body_ = dump_.ClassDump(30, 0, {{1, kLong}, {2, kInt}}) +
            dump_.ClassDump(20, 30, {{3, kObject}, {4, kObject}}) +
            dump_.ClassDump(40, 30, {{3, kObject}, {4, kObject}});
  }

  std::string Values(uint64_t address,
                     uint32_t capacity,
                     uint64_t att,
                     uint64_t file) const {
    return dump_.Id(att) + dump_.Id(file) +
           TestDump::Number(static_cast<uint32_t>(address >> 32)) +
           TestDump::Number(static_cast<uint32_t>(address)) + TestDump::Number(capacity);
  }

  // "id:address+bytes" of each.
  std::vector<std::string> Found() {
    dump_.Segment(body_).End();
    const Result<DumpFile> file = DumpFile::Read(dump_.bytes(), "test");
    EXPECT_TRUE(file.ok());
    const HeapDump& dump = file.value().dumps().at(0);
    const Result<HeapGraph> heap = LoadGraph(file.value(), dump);
    EXPECT_TRUE(heap.ok());
    std::vector<std::string> found;
    for (const DirectBuffer& buffer : DirectBuffersOf(file.value(), dump, heap.value()))
      found.push_back(std::to_string(heap.value().ids.IdOf(buffer.object)) + ":" +
                      HexOf(buffer.address) + "+" + std::to_string(buffer.bytes));
    return found;
  }

  TestDump dump_{GetParam()};
  std::string body_;
};

TEST_P(DirectBuffersTest, BuffersWithMemoryOfTheirOwnAreFound) {
  Begin();
  body_ += dump_.Instance(100, 20, Values(0x7f0000002000, 64, 0, 0)) +
           dump_.Instance(101, 20, Values(0x7f0000001000, 32, 0, 0)) +
           dump_.Instance(102, 20, Values(0x7f0000001008, 8, 101, 0)) +  // a part
           dump_.Instance(103, 20, Values(0x7f0000003000, 8, 0, 101)) +  // a file
           dump_.Instance(104, 20, Values(0x7f0000001000, 32, 0, 0)) +   // the same again
           dump_.Instance(105, 20, Values(0, 32, 0, 0)) +
           dump_.Instance(106, 20, Values(8, 0, 0, 0)) +
           dump_.Instance(107, 40, Values(0x7f0000009000, 8, 0, 0));
  EXPECT_EQ(Found(),
            (std::vector<std::string>{"101:0x7f0000001000+32", "100:0x7f0000002000+64"}));
}

TEST_P(DirectBuffersTest, ValuesThatAreCutOrNegativeAreNoBuffers) {
  Begin();
  const std::string whole = Values(0x1000, 64, 0, 0);
  for (size_t length = 0; length < whole.size(); ++length)
    body_ += dump_.Instance(100 + length, 20, whole.substr(0, length));
  body_ += dump_.Instance(200, 20, Values(0x1000, 0x80000000, 0, 0));
  EXPECT_EQ(Found(), std::vector<std::string>());
}

TEST_P(DirectBuffersTest, FieldsOfOtherTypesAreNotRead) {
  dump_.String(1, "address").String(2, "capacity");
  dump_.Class(20, "java/nio/DirectByteBuffer");
  body_ =
      dump_.ClassDump(20, 0, {{1, kInt}, {2, kByte}}) + dump_.Instance(100, 20, "12345");
  EXPECT_EQ(Found(), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(IdSizes, DirectBuffersTest, testing::Values(4u, 8u));

}  // namespace
}  // namespace heapprofd::hprof
