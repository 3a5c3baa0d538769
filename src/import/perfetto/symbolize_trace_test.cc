// Symbols for a trace, put to its frames at once and by way of a file behind the trace.
#include "import/perfetto/symbolize_trace.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "base/text.h"
#include "import/perfetto/interned_tables.h"
#include "import/perfetto/test_traces.h"
#include "symbolize/test_programs.h"
#include "trace/fields.h"
#include "trace/module_symbols.h"

namespace heapprofd {
namespace {

constexpr char kDraw[] = "_ZN6shapes4DrawEl";
constexpr char kDrawForPeople[] = "shapes::Draw(long)";

class SymbolizeTraceTest : public testing::Test {
 protected:
  // A frame of the program `shapes`, in the process that mapped it to `start`.
  uint32_t AddFrame(uint64_t rel_pc, uint64_t start, const std::string& build_id) {
    ImportedMapping mapping;
    mapping.name = builder_.Intern(MappingName(shapes_.path));
    mapping.build_id = builder_.Intern(HexEncode(build_id));
    mapping.start = start;
    mapping.end = start + 0x10000;
    mapping.exact_offset = FindSection(shapes_, ".text").offset & ~uint64_t{0xfff};
    return builder_.InternFrame(kEmptyString, builder_.InternMapping(mapping), rel_pc);
  }

  // As a stripped file or another program would name it.
  void NameFrame(uint32_t frame, const char* file = nullptr) {
    trace_.frames.symbol_set[frame] =
        builder_.AddSymbol(kNoId, builder_.Intern("known"),
                           file == nullptr ? kNoId : builder_.Intern(file), 0);
  }

  std::string NameOf(uint32_t frame) const {
    return std::string(trace_.Text(trace_.symbols.name[trace_.frames.symbol_set[frame]]));
  }

  const TestProgram shapes_{"shapes"};
  const uint64_t draw_ = FindSymbol(shapes_, kDraw).start;
  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
};

TEST_F(SymbolizeTraceTest, FramesOfAllProcessesThatMapTheFileAreNamed) {
  const uint32_t first = AddFrame(draw_, 0x10000, shapes_.build_id);
  const uint32_t second = AddFrame(draw_, 0x50000, shapes_.build_id);
  const uint32_t other = AddFrame(draw_, 0x10000, "another version");
  const FoundSymbols found = FindSymbols(trace_, SymbolizeOptions());
  ApplySymbols(found, builder_);
  for (const uint32_t frame : {first, second}) {
    const uint32_t set = trace_.frames.symbol_set[frame];
    ASSERT_NE(set, kNoId);
    const size_t outermost = trace_.symbols.EndOf(set) - 1;
    EXPECT_EQ(trace_.Text(trace_.symbols.name[outermost]), kDrawForPeople);
    EXPECT_TRUE(
        trace_.Text(trace_.symbols.source_file[outermost]).ends_with("shapes.cc"));
    EXPECT_GT(trace_.symbols.line[outermost], 0u);
  }
  EXPECT_EQ(trace_.frames.symbol_set[other], kNoId);
  EXPECT_EQ(found.summary.unnamed_frames, 1u);
  ASSERT_EQ(found.summary.messages.size(), 1u);
}

TEST_F(SymbolizeTraceTest, FramesWithLinesAreLeftAlone) {
  const uint32_t frame = AddFrame(draw_, 0x10000, shapes_.build_id);
  NameFrame(frame, "known.cc");
  const FoundSymbols found = FindSymbols(trace_, SymbolizeOptions());
  EXPECT_TRUE(found.unnamed.frames.empty());
  EXPECT_TRUE(found.named.frames.empty());
}

TEST_F(SymbolizeTraceTest, FramesThatHaveANameAloneGetTheirLines) {
  const uint32_t frame = AddFrame(draw_, 0x10000, shapes_.build_id);
  NameFrame(frame);
  ApplySymbols(FindSymbols(trace_, SymbolizeOptions()), builder_);
  EXPECT_EQ(NameOf(frame), kDrawForPeople);
}

TEST_F(SymbolizeTraceTest, WhereNoLinesAreFoundTheNameStaysAndNothingIsSaid) {
  const uint32_t frame = AddFrame(draw_, 0x10000, "another version");
  NameFrame(frame);
  const FoundSymbols found = FindSymbols(trace_, SymbolizeOptions());
  ApplySymbols(found, builder_);
  EXPECT_EQ(NameOf(frame), "known");
  EXPECT_EQ(found.summary.unnamed_frames, 0u);
  EXPECT_TRUE(found.summary.messages.empty());
}

TEST_F(SymbolizeTraceTest, SymbolsWrittenBehindTheTraceFindTheirFrames) {
  AddFrame(draw_, 0x10000, shapes_.build_id);
  const FoundSymbols found = FindSymbols(trace_, SymbolizeOptions());
  const TraceCode& code = found.unnamed;
  std::string symbols;
  for (const std::string& message :
       ModuleSymbolsMessages(code.mappings, code.frames, NamedModules::kWithBuildId)) {
    std::string packet;
    protozero::pbf_writer(packet).add_message(field::TracePacket::kModuleSymbols,
                                              message);
    protozero::pbf_writer(symbols).add_message(field::Trace::kPacket, packet);
  }
  ASSERT_FALSE(symbols.empty());
  ImportedTrace other;
  TraceBuilder other_builder(&other);
  ImportedMapping mapping = trace_.mappings[0];
  mapping.name = other_builder.Intern(trace_.Text(mapping.name));
  mapping.build_id = other_builder.Intern(trace_.Text(mapping.build_id));
  const uint32_t frame = other_builder.InternFrame(
      kEmptyString, other_builder.InternMapping(mapping), draw_);
  MemorySource source(symbols);
  ASSERT_TRUE(ReadTrace(source, "symbols", other_builder).ok());
  const uint32_t set = other.frames.symbol_set[frame];
  ASSERT_NE(set, kNoId);
  EXPECT_EQ(other.Text(other.symbols.name[other.symbols.EndOf(set) - 1]), kDrawForPeople);
}

TEST(BuildIdTest, TextAndBytesAreTheReverseOfEachOther) {
  EXPECT_EQ(BuildIdText("\xab\xcd"), "abcd");
  EXPECT_EQ(BuildIdBytes("abcd"), "\xab\xcd");
  const std::string breakpad = "0123456789ABCDEF0123456789ABCDEF0";  // 33 digits
  EXPECT_EQ(BuildIdText(breakpad), breakpad);
  EXPECT_EQ(BuildIdBytes(breakpad), breakpad);
}

TEST(MappingNameTest, ComponentsStandBehindOneSlashEach) {
  EXPECT_EQ(MappingName("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
  EXPECT_EQ(MappingName("//usr//lib/"), "/usr/lib");
  EXPECT_EQ(MappingName("[vdso]"), "/[vdso]");
  EXPECT_EQ(MappingName(""), "");
}

}  // namespace
}  // namespace heapprofd
