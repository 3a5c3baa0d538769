// traceconv binary and decompress_packets: traces in the form that every reader takes.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <protozero/exception.hpp>
#include <protozero/pbf_writer.hpp>

#include "cli/convert/trace_packets.h"
#include "cli/convert/traceconv.h"
#include "cli/output_file.h"
#include "import/perfetto/byte_source.h"
#include "import/perfetto/inflate.h"
#include "trace/fields.h"
#include "trace/framing.h"
#include "trace/message_reader.h"
#include "trace/text_format.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxText = size_t{512} << 20;
constexpr size_t kMaxCompressedPackets = size_t{64} << 20;

Result<std::string> ReadText(const std::string& path) {
  HPD_TRY_ASSIGN(const std::unique_ptr<FileSource> file, FileSource::Open(path));
  InflatingSource source(file.get());
  std::string text;
  std::string piece(size_t{64} << 10, '\0');
  while (true) {
    HPD_TRY_ASSIGN(const size_t count, source.ReadFully(piece));
    text.append(piece, 0, count);
    if (text.size() > kMaxText)
      return Status(StatusCode::kCorrupt,
                    "cannot read " + path + ": it has more than 512 MiB of text");
    if (count < piece.size())
      return text;
  }
}

// Packets of a trace go to a file; those that hold compressed ones are replaced by them.
class PlainPackets {
 public:
  explicit PlainPackets(OutputFile* output) : output_(output) {}

  void Add(std::string_view packet) {
    try {
      MessageReader reader(packet);
      while (reader.Next()) {
        if (reader.field() == field::TracePacket::kCompressedPackets)
          return AddInflated(Compression::kZlib, reader.Bytes());
        if (reader.field() == field::TracePacket::kZstdCompressedPackets)
          return AddInflated(Compression::kZstd, reader.Bytes());
      }
    } catch (const protozero::exception&) {
      ++damaged_;
      return;
    }
    Write(packet);
  }

  uint64_t damaged() const { return damaged_; }

 private:
  void AddInflated(Compression compression, std::string_view bytes) {
    bool is_whole = !budget_.is_spent();
    if (is_whole) {
      const std::string packets =
          InflateAll(compression, bytes, kMaxCompressedPackets, &is_whole);
      is_whole = budget_.Take(bytes.size(), packets.size()) && is_whole;
      std::string_view rest = packets;
      while (const std::optional<std::string_view> packet = TakePacket(&rest))
        Write(*packet);
      is_whole = is_whole && rest.empty();
    }
    damaged_ += is_whole ? 0 : 1;
  }

  // Errors stick to the file.
  void Write(std::string_view packet) {
    std::string bytes;
    protozero::pbf_writer(bytes).add_bytes(field::Trace::kPacket, packet.data(),
                                           packet.size());
    static_cast<void>(output_->Write(bytes));
  }

  OutputFile* output_;
  InflationBudget budget_;
  uint64_t damaged_ = 0;
};

}  // namespace

Status ConvertToBinary(const TraceconvOptions& options) {
  HPD_TRY_ASSIGN(const std::string text, ReadText(options.input));
  HPD_TRY_ASSIGN(const std::string trace, TraceTextFormat().TraceFromText(text));
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  HPD_TRY(output.Write(trace));
  return output.Finish();
}

Status ConvertToPlainPackets(const TraceconvOptions& options) {
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  PlainPackets packets(&output);
  HPD_TRY_ASSIGN(const ReadReport report,
                 ReadTracePackets(options.input,
                                  [&](std::string_view packet) { packets.Add(packet); }));
  HPD_TRY(output.Finish());
  TellDamage(report, packets.damaged(), "left out or incomplete");
  return {};
}

}  // namespace heapprofd
