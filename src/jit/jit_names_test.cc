#include "jit/jit_names.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/byte_reader.h"
#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

ScopedFd FileOf(const std::string& bytes) {
  ScopedFd fd(memfd_create("jit", MFD_CLOEXEC));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  return fd;
}

std::string NameIn(const std::string& perf_map, uint64_t pc) {
  JitNames names({pc});
  names.ReadPerfMap(FileOf(perf_map).get());
  const auto line = names.Find(pc);
  return line ? line->function : "(none)";
}

// A jitdump, record by record.
class Jitdump {
 public:
  Jitdump() {
    for (const uint32_t word : {0x4A695444u, 1u, 40u, 62u, 0u, 1234u, 0u, 0u, 0u, 0u})
      AppendNumber(word, bytes);
  }

  void Load(uint64_t address, uint64_t size, uint64_t index, const std::string& name) {
    std::string body;
    AppendNumber(uint64_t{1234}, body);  // pid and tid
    for (const uint64_t word : {address, address, size, index})
      AppendNumber(word, body);
    Record(0, body + name + '\0' + std::string(size, 'c'));
  }

  void Move(uint64_t from, uint64_t to, uint64_t size, uint64_t index) {
    std::string body;
    for (const uint64_t word : {uint64_t{1234}, to, from, to, size, index})
      AppendNumber(word, body);
    Record(1, body);
  }

  struct Position {
    uint64_t pc;
    uint32_t line;
    std::string file;
  };

  void Lines(uint64_t address, const std::vector<Position>& positions) {
    std::string body;
    AppendNumber(address, body);
    AppendNumber(uint64_t{positions.size()}, body);
    for (const Position& position : positions) {
      AppendNumber(position.pc, body);
      AppendNumber(position.line, body);
      AppendNumber(uint32_t{7}, body);
      body += position.file + '\0';
    }
    Record(2, body);
  }

  void Record(uint32_t kind, const std::string& body) {
    AppendNumber(kind, bytes);
    AppendNumber(static_cast<uint32_t>(16 + body.size()), bytes);
    AppendNumber(uint64_t{99}, bytes);
    bytes += body;
  }

  std::string bytes;
};

std::string Describe(const std::string& jitdump, uint64_t pc) {
  JitNames names({pc});
  names.ReadJitdump(FileOf(jitdump).get());
  const auto line = names.Find(pc);
  return line ? line->function + " " + line->file + ":" + std::to_string(line->line)
              : "(none)";
}

TEST(PerfMapTest, AnAddressHasTheNameOfTheCodeAroundIt) {
  const std::string map = "1000 10 first\n0x2000 0x20 int Alloc.run(byte[])\n";
  EXPECT_EQ(NameIn(map, 0x1000), "first");
  EXPECT_EQ(NameIn(map, 0x100f), "first");
  EXPECT_EQ(NameIn(map, 0x1010), "(none)");
  EXPECT_EQ(NameIn(map, 0xfff), "(none)");
  EXPECT_EQ(NameIn(map, 0x2001), "int Alloc.run(byte[])");
}

TEST(PerfMapTest, CodeThatUsesThePlaceAgainReplacesTheNameBefore) {
  EXPECT_EQ(NameIn("1000 100 old\n1010 10 new\n", 0x1018), "new");
  EXPECT_EQ(NameIn("1010 10 old\n1000 100 new\n", 0x1018), "new");
}

TEST(PerfMapTest, DamagedLinesAreSkipped) {
  EXPECT_EQ(NameIn("1000\nzz\n\n1000 10\n1000 10 \n2000 1 x\n1000 10 good", 0x1000),
            "good");
  EXPECT_EQ(NameIn("ffffffffffffffff ffffffffffffffff wraps\n", 5), "(none)");
}

TEST(PerfMapTest, LinesLongerThanAnyBufferAreCutAndTheNextOneIsRead) {
  const std::string map = "1000 10 " + std::string(200'000, 'x') + "\n2000 10 next\n";
  EXPECT_EQ(NameIn(map, 0x1000), std::string(4096, 'x'));
  EXPECT_EQ(NameIn(map, 0x2000), "next");
}

TEST(JitdumpTest, LoadsHaveNames) {
  Jitdump dump;
  dump.Load(0x1000, 0x10, 1, "one");
  dump.Load(0x2000, 0x10, 2, "two");
  EXPECT_EQ(Describe(dump.bytes, 0x100f), "one :0");
  EXPECT_EQ(Describe(dump.bytes, 0x2000), "two :0");
  EXPECT_EQ(Describe(dump.bytes, 0x1010), "(none)");
}

TEST(JitdumpTest, LinesBelongToTheLoadThatFollows) {
  Jitdump dump;
  dump.Lines(0x1000, {{0x1000, 7, "/src/a.js"}, {0x1008, 9, "\xff"}});
  dump.Load(0x1000, 0x10, 1, "one");
  dump.Load(0x2000, 0x10, 2, "two");
  EXPECT_EQ(Describe(dump.bytes, 0x1007), "one /src/a.js:7");
  EXPECT_EQ(Describe(dump.bytes, 0x1008), "one /src/a.js:9");
  EXPECT_EQ(Describe(dump.bytes, 0x2008), "two :0");
}

TEST(JitdumpTest, CodeThatMovesKeepsItsName) {
  Jitdump dump;
  dump.Load(0x1000, 0x10, 1, "one");
  dump.Load(0x3000, 0x10, 2, "two");
  dump.Move(0x1000, 0x3000, 0x10, 1);
  EXPECT_EQ(Describe(dump.bytes, 0x3004), "one :0");
}

TEST(JitdumpTest, UnknownRecordsAreSkippedAndADamagedOneEndsTheFile) {
  Jitdump dump;
  dump.Record(77, "whatever");
  dump.Load(0x1000, 0x10, 1, "one");
  AppendNumber(uint32_t{0}, dump.bytes);
  AppendNumber(uint32_t{3}, dump.bytes);  // shorter than its own prefix
  AppendNumber(uint64_t{0}, dump.bytes);
  EXPECT_EQ(Describe(dump.bytes, 0x1000), "one :0");
  EXPECT_EQ(Describe(dump.bytes.substr(0, dump.bytes.size() / 2), 0x1000), "(none)");
  EXPECT_EQ(Describe("JiTD", 0x1000), "(none)");
}

TEST(JitNameTest, NamesOfV8AreTakenApart) {
  const SourceLine line = ParseJitName("JS:*outerCaller /src/a b.js:3:21");
  EXPECT_EQ(line.function, "outerCaller");
  EXPECT_EQ(line.file, "/src/a b.js");
  EXPECT_EQ(line.line, 3u);
  EXPECT_EQ(line.system_name, "JS:*outerCaller /src/a b.js:3:21");
  EXPECT_EQ(ParseJitName("LazyCompile:~ node:fs:12:1").function, "(anonymous)");
  EXPECT_EQ(ParseJitName("LazyCompile:~ node:fs:12:1").file, "node:fs");
  EXPECT_EQ(ParseJitName("int Alloc.run(byte[])").function, "int Alloc.run(byte[])");
  EXPECT_EQ(ParseJitName("JS:odd").function, "JS:odd");
}

}  // namespace
}  // namespace heapprofd
