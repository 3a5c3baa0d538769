// Files in all the shapes in which traces come, and damaged ones.
#include "import/perfetto/packet_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <protozero/pbf_writer.hpp>

#include "import/perfetto/test_traces.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

std::string Deflate(const std::string& bytes, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string output(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  output.resize(stream.total_out);
  deflateEnd(&stream);
  return output;
}

std::string Gzip(const std::string& bytes) {
  return Deflate(bytes, 15 + 16);
}

std::string Zstd(const std::string& bytes) {
  std::string output(ZSTD_compressBound(bytes.size()), '\0');
  output.resize(
      ZSTD_compress(output.data(), output.size(), bytes.data(), bytes.size(), 3));
  return output;
}

// A trace with the given bodies of packets.
std::string TraceOf(const std::vector<std::string>& packets) {
  std::string trace;
  protozero::pbf_writer writer(trace);
  for (const std::string& packet : packets)
    writer.add_message(field::Trace::kPacket, packet);
  return trace;
}

// A source that gives a few bytes at a time, as a pipe may.
class SlowSource : public ByteSource {
 public:
  explicit SlowSource(std::string_view bytes) : bytes_(bytes) {}

  Result<size_t> Read(std::span<char> output) override {
    return bytes_.Read(output.first(std::min<size_t>(output.size(), 3)));
  }

 private:
  MemorySource bytes_;
};

struct Packets {
  Result<ReadReport> report;
  std::string text;  // bodies, each behind a '|'
};

Packets Read(const std::string& bytes) {
  std::string fast;
  std::string slow;
  MemorySource source(bytes);
  Result<ReadReport> report = ReadPackets(
      source, "test", [&](std::string_view packet) { fast.append("|").append(packet); });
  SlowSource slow_source(bytes);
  const Result<ReadReport> slow_report =
      ReadPackets(slow_source, "test",
                  [&](std::string_view packet) { slow.append("|").append(packet); });
  EXPECT_EQ(fast, slow);
  EXPECT_EQ(report.ok(), slow_report.ok());
  return {std::move(report), fast};
}

const std::string kPlain = TraceOf({"one", "two"});

TEST(PacketReaderTest, PlainAndCompressedFilesHoldTheSamePackets) {
  for (const std::string& bytes : {kPlain, Gzip(kPlain), Zstd(kPlain)}) {
    const Packets packets = Read(bytes);
    ASSERT_TRUE(packets.report.ok());
    EXPECT_EQ(packets.text, "|one|two");
    EXPECT_EQ(packets.report.value().damage, "");
  }
}

TEST(PacketReaderTest, FilesMayBeConcatenatedInAnyMixture) {
  const std::string more = TraceOf({"three", ""});
  for (const std::string& bytes :
       {kPlain + more, Gzip(kPlain) + Gzip(more), Gzip(kPlain) + more,
        kPlain + Gzip(more), Zstd(kPlain) + Gzip(more), kPlain + Zstd(more)}) {
    const Packets packets = Read(bytes);
    ASSERT_TRUE(packets.report.ok());
    EXPECT_EQ(packets.text, "|one|two|three|");
    EXPECT_EQ(packets.report.value().damage, "");
  }
}

TEST(PacketReaderTest, OtherFieldsOfATraceAreSkipped) {
  std::string trace;
  protozero::pbf_writer writer(trace);
  writer.add_uint64(7, 5);
  writer.add_string(field::Trace::kPacket, "one");
  writer.add_fixed32(8, 5);
  writer.add_fixed64(9, 5);
  writer.add_string(10, "x");
  writer.add_string(field::Trace::kPacket, "two");
  EXPECT_EQ(Read(trace).text, "|one|two");
}

TEST(PacketReaderTest, AFileThatEndsInAPacketIsReadAsFarAsItGoes) {
  const Packets packets = Read(kPlain.substr(0, kPlain.size() - 1));
  ASSERT_TRUE(packets.report.ok());
  EXPECT_EQ(packets.text, "|one");
  EXPECT_EQ(packets.report.value().lost_bytes, 4u);
  EXPECT_EQ(packets.report.value().damage, "it ends in the middle of a packet");
}

TEST(PacketReaderTest, ATruncatedOrDamagedGzipFileIsReadAsFarAsItGoes) {
  std::vector<std::string> bodies;
  for (int i = 0; i < 30'000; ++i)
    bodies.push_back(std::to_string(i * 7919));
  const std::string whole = Gzip(TraceOf(bodies));
  const Packets truncated = Read(whole.substr(0, whole.size() / 2));
  ASSERT_TRUE(truncated.report.ok());
  EXPECT_GT(truncated.report.value().packets, 3'000u);
  EXPECT_LT(truncated.report.value().packets, 30'000u);
  EXPECT_NE(truncated.report.value().damage, "");
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x55);
  damaged[whole.size() / 2 + 1] = static_cast<char>(damaged[whole.size() / 2 + 1] ^ 0x55);
  const Packets broken = Read(damaged);
  ASSERT_TRUE(broken.report.ok());
  EXPECT_NE(broken.report.value().damage, "");
}

TEST(PacketReaderTest, FilesWithoutAPacketAreErrorsThatSayWhy) {
  const Packets empty = Read("");
  ASSERT_FALSE(empty.report.ok());
  EXPECT_EQ(empty.report.status().code(), StatusCode::kNotFound);
  EXPECT_NE(empty.report.status().message().find("it is empty"), std::string::npos);
  for (const std::string& bytes :
       {std::string("hello, this is no trace"), std::string(600, '\0'),
        Gzip("text\xff\xff"),
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)}) {
    const Packets packets = Read(bytes);
    ASSERT_FALSE(packets.report.ok());
    EXPECT_EQ(packets.report.status().code(), StatusCode::kCorrupt);
    EXPECT_NE(packets.report.status().message().find("cannot read trace test"),
              std::string::npos);
  }
}

TEST(PacketReaderTest, AHugeLengthTakesNoMemory) {
  std::string trace = kPlain + "\x0a\xff\xff\xff\xff\x01";  // a packet of 512 MiB - 1
  trace += std::string(100, 'x');
  const Packets packets = Read(trace);
  ASSERT_TRUE(packets.report.ok());
  EXPECT_EQ(packets.report.value().packets, 2u);
  EXPECT_EQ(packets.report.value().lost_bytes, 106u);
}

TEST(PacketReaderTest, AMissingFileIsAnErrorWithItsName) {
  const Result<ReadReport> report =
      ReadPackets("/nonexistent/trace", [](std::string_view) {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().message(),
            "cannot open trace /nonexistent/trace: No such file or directory");
}

std::string CompressedPackets(uint32_t field, const std::string& bytes) {
  std::string packet;
  protozero::pbf_writer(packet).add_bytes(field, bytes);
  return TraceOf({packet});
}

TEST(TraceImporterTest, CompressedPacketsAreUnpacked) {
  const std::string trace = FixtureBytes("two_dumps");
  const std::string expected = ReadBytes(trace)->Allocations();
  const std::string zlib =
      CompressedPackets(field::TracePacket::kCompressedPackets, Deflate(trace, 15));
  EXPECT_EQ(ReadBytes(zlib)->Allocations(), expected);
  const std::string zstd =
      CompressedPackets(field::TracePacket::kZstdCompressedPackets, Zstd(trace));
  EXPECT_EQ(ReadBytes(zstd)->Allocations(), expected);
}

TEST(TraceImporterTest, DamagedOrEndlessCompressedPacketsAreCounted) {
  const auto damaged =
      ReadBytes(CompressedPackets(field::TracePacket::kCompressedPackets, "no zlib"));
  EXPECT_EQ(damaged->trace.stats.Get(StatId::kCompressedPacketError), 1);
  const std::string zeros(size_t{80} << 20, '\0');  // more than is unpacked
  const auto bomb = ReadBytes(
      CompressedPackets(field::TracePacket::kCompressedPackets, Deflate(zeros, 15)));
  EXPECT_EQ(bomb->trace.stats.Get(StatId::kCompressedPacketError), 1);
}

TEST(TraceImporterTest, APacketThatBreaksOffIsCountedAndTheNextOneRead) {
  std::string trace = TraceOf({"\x42\xff\xff"});  // timestamp, then a length without end
  trace += FixtureBytes("two_dumps");
  const auto test = ReadBytes(trace);
  EXPECT_EQ(test->trace.stats.Get(StatId::kPacketParserError), 1);
  EXPECT_EQ(test->trace.dumps.size(), 2u);
}

TEST(PacketReaderTest, ACompressedFileThatEndsBetweenPacketsIsIncomplete) {
  // Enough of the stream for both packets, without its checksum.
  const std::string bytes = Gzip(kPlain);
  const Packets packets = Read(bytes.substr(0, bytes.size() - 8));
  ASSERT_TRUE(packets.report.ok());
  EXPECT_EQ(packets.text, "|one|two");
  EXPECT_NE(packets.report.value().damage, "");
}

TEST(InflationBudgetTest, RecordingsPassAndBombsDoNot) {
  constexpr uint64_t kMegabyte = uint64_t{1} << 20;
  InflationBudget recording;
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(recording.Take(kMegabyte * 30, kMegabyte * 1000));
  InflationBudget small;  // a small file may repeat itself as it likes
  EXPECT_TRUE(small.Take(kMegabyte / 10, kMegabyte * 60));
  InflationBudget bomb;
  bool is_taken = true;
  for (int i = 0; i < 4; ++i)
    is_taken = bomb.Take(kMegabyte / 10, kMegabyte * 100);
  EXPECT_FALSE(is_taken);
  InflationBudget unlimited(0);
  EXPECT_TRUE(unlimited.Take(1, kMegabyte << 20));
}

// 49 MB of them held 48 GB, which were all inflated.
TEST(TraceImporterTest, ABombOfManyCompressedPacketsIsGivenUpAfterItsFirstOnes) {
  constexpr int kPackets = 100;
  const std::string one =
      CompressedPackets(field::TracePacket::kCompressedPackets,
                        Deflate(std::string(size_t{30} << 20, '\0'), 15));
  std::string bomb;
  for (int i = 0; i < kPackets; ++i)
    bomb += one;
  const auto test = ReadBytes(bomb);
  EXPECT_GT(test->trace.stats.Get(StatId::kUnpackLimit), kPackets / 2);
}

TEST(TraceImporterTest, ABombInACompressedFileIsMeasuredByTheFile) {
  const std::string zeros = Deflate(std::string(size_t{30} << 20, '\0'), 15);
  std::string bomb;
  for (int i = 0; i < 40; ++i)
    bomb += CompressedPackets(field::TracePacket::kCompressedPackets, zeros);
  const auto test = ReadBytes(Gzip(bomb));
  EXPECT_GT(test->trace.stats.Get(StatId::kUnpackLimit), 35);
}

}  // namespace
}  // namespace heapprofd
