#include "import/perfetto/packet_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "import/perfetto/read_ahead.h"
#include "trace/framing.h"

namespace heapprofd {
namespace {

constexpr size_t kTarBlock = 512;

// Too short to tell a compressed stream from a field with the same first byte.
bool MayBecomeCompressed(std::string_view rest) {
  constexpr size_t kMagic = 4;
  return rest.size() < kMagic && (rest.starts_with('\x1f') || rest.starts_with('\x28'));
}

// Reads one stream of packets into a buffer that is as large as the largest packet.
class StreamReader {
 public:
  StreamReader(InflatingSource* source, const PacketVisitor& visit, ReadReport* report)
      : source_(source), visit_(visit), report_(report) {}

  Status Run() {
    while (true) {
      VisitPackets();
      if (!report_->damage.empty())
        break;
      Result<size_t> count = Fill();
      if (!count.ok() && count.status().code() != StatusCode::kCorrupt)
        return std::move(count).status();
      if (!count.ok())
        report_->damage = count.status().message();
      if (!count.ok() || count.value() == 0)
        break;
    }
    report_->lost_bytes += end_ - begin_;
    if (report_->damage.empty() && (end_ != begin_ || source_->is_truncated()))
      report_->damage = "it ends in the middle of a packet";
    return {};
  }

 private:
  std::string_view Rest() const {
    return std::string_view(buffer_.data() + begin_, end_ - begin_);
  }

  void VisitPackets() {
    while (true) {
      if (source_->RestartAt(Rest())) {
        end_ = begin_;
        return;
      }
      if (MayBecomeCompressed(Rest()))
        return;
      PacketStart start;
      const FrameState state = ReadPacketStart(Rest(), &start);
      if (state == FrameState::kCorrupt)
        report_->damage = "what follows is no packet";
      if (state != FrameState::kComplete)
        return;
      wanted_ = start.header_size + start.body_size;
      if (Rest().size() < wanted_)
        return;
      if (start.is_packet) {
        visit_(Rest().substr(start.header_size, start.body_size));
        ++report_->packets;
      }
      begin_ += wanted_;
      wanted_ = 0;
    }
  }

  // Memory grows with what has arrived, not with what a length promises.
  Result<size_t> Fill() {
    constexpr size_t kStep = size_t{1} << 20;
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() < end_ + kStep)
      buffer_.resize(std::max(end_ + kStep, std::min(wanted_, end_ * 2)));
    Result<size_t> count =
        source_->Read(std::span(buffer_.data() + end_, buffer_.size() - end_));
    if (count.ok()) {
      end_ += count.value();
      report_->bytes += count.value();
    }
    return count;
  }

  InflatingSource* source_;
  const PacketVisitor& visit_;
  ReadReport* report_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t wanted_ = 0;  // bytes of the packet at begin_; 0: not known
};

Status ReadStream(ByteSource& source, const PacketVisitor& visit, ReadReport* report) {
  InflatingSource inflating(&source);
  return StreamReader(&inflating, visit, report).Run();
}

bool IsTarHeader(std::string_view block) {
  constexpr size_t kMagicAt = 257;
  return block.size() == kTarBlock && block.substr(kMagicAt).starts_with("ustar");
}

// What a file begins with; damage behind it is met again when reading goes on.
Result<std::string> ReadHead(ByteSource& source) {
  std::string head(kTarBlock, '\0');
  size_t done = 0;
  while (done < head.size()) {
    Result<size_t> count = source.Read(std::span(head).subspan(done));
    if (!count.ok() && count.status().code() != StatusCode::kCorrupt)
      return std::move(count).status();
    if (!count.ok() || count.value() == 0)
      break;
    done += count.value();
  }
  head.resize(done);
  return head;
}

// Of a tar header's octal size.
std::optional<uint64_t> MemberSize(std::string_view header) {
  constexpr size_t kSizeAt = 124;
  constexpr size_t kSizeDigits = 11;
  std::string_view digits = header.substr(kSizeAt, kSizeDigits);
  while (digits.starts_with(' '))
    digits.remove_prefix(1);
  uint64_t size = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), size, 8);
  if (error != std::errc() || end == digits.data())
    return std::nullopt;
  return size;
}

// Reads what is left of a member and its padding.
Status Drain(ByteSource& source) {
  std::vector<char> scratch(size_t{64} << 10);
  while (true) {
    HPD_TRY_ASSIGN(const size_t count, source.Read(scratch));
    if (count == 0)
      return {};
  }
}

Status ReadTar(ByteSource& source,
               std::string header,
               const PacketVisitor& visit,
               ReadReport* report) {
  constexpr size_t kTypeAt = 156;
  while (IsTarHeader(header)) {
    const std::optional<uint64_t> size = MemberSize(header);
    if (!size) {
      report->damage = "its archive is damaged";
      return {};
    }
    const uint64_t padding = (kTarBlock - *size % kTarBlock) % kTarBlock;
    PrefixedSource member("", &source, *size);
    if (header[kTypeAt] == '0' || header[kTypeAt] == '\0')
      HPD_TRY(ReadStream(member, visit, report));
    HPD_TRY(Drain(member));
    PrefixedSource rest("", &source, padding);
    HPD_TRY(Drain(rest));
    header.assign(kTarBlock, '\0');
    HPD_TRY_ASSIGN(const size_t count, source.ReadFully(header));
    header.resize(count);
  }
  return {};
}

}  // namespace

Result<ReadReport> ReadPackets(ByteSource& source,
                               const std::string& name,
                               const PacketVisitor& visit) {
  ReadReport report;
  InflatingSource inflated(&source);
  ReadAheadSource ahead(&inflated);
  // Who waits for a pipe's writer cannot be stopped.
  ByteSource& bytes = source.may_block() ? static_cast<ByteSource&>(inflated) : ahead;
  HPD_TRY_ASSIGN(std::string head, ReadHead(bytes));
  const bool is_empty = head.empty();
  if (IsTarHeader(head)) {
    HPD_TRY(ReadTar(bytes, std::move(head), visit, &report));
  } else {
    PrefixedSource whole(std::move(head), &bytes);
    HPD_TRY(ReadStream(whole, visit, &report));
  }
  ahead.Stop();
  if (report.damage.empty() && inflated.is_truncated())
    report.damage = "its compressed data end too early";
  if (is_empty && report.damage.empty())
    return Status(StatusCode::kNotFound,
                  "cannot read trace " + name +
                      ": it is empty; was the recording interrupted before its end?");
  if (report.packets == 0)
    return Status(StatusCode::kCorrupt,
                  "cannot read trace " + name +
                      ": it holds no trace packet; give it the raw-trace that "
                      "heap_profile wrote, or a trace of Perfetto");
  return report;
}

Result<ReadReport> ReadPackets(const std::string& path, const PacketVisitor& visit) {
  HPD_TRY_ASSIGN(std::unique_ptr<FileSource> file, FileSource::Open(path));
  return ReadPackets(*file, path, visit);
}

}  // namespace heapprofd
