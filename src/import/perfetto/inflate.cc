#include "import/perfetto/inflate.h"

#include <isa-l/igzip_lib.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace heapprofd {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // whose lengths have 32 bits

// Several times as fast as zlib: dumps are large. Checks the sum at the end, too.
class GzipInflater : public Inflater {
 public:
  GzipInflater() {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }

  Result<Progress> Inflate(std::string_view input, std::span<char> output) override {
    const size_t given = std::min(input.size(), kMostAtOnce);
    const size_t room = std::min(output.size(), kMostAtOnce);
    state_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(input.data()));
    state_.avail_in = static_cast<uint32_t>(given);
    state_.next_out = reinterpret_cast<uint8_t*>(output.data());
    state_.avail_out = static_cast<uint32_t>(room);
    const int result = isal_inflate(&state_);
    if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT)
      return Status(StatusCode::kCorrupt,
                    std::string("cannot inflate: ") + DescribeDamage(result));
    return Progress{.consumed = given - state_.avail_in,
                    .produced = room - state_.avail_out,
                    .is_end = state_.block_state == ISAL_BLOCK_FINISH};
  }

 private:
  static const char* DescribeDamage(int result) {
    switch (result) {
      case ISAL_INVALID_WRAPPER:
        return "incorrect header check";
      case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
      case ISAL_INCORRECT_CHECKSUM:
        return "incorrect data check";
      default:
        return "damaged data";
    }
  }

  inflate_state state_;
};

class ZlibInflater : public Inflater {
 public:
  ZlibInflater() { HPD_CHECK(inflateInit(&stream_) == Z_OK); }

  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;

  ~ZlibInflater() override { inflateEnd(&stream_); }

  Result<Progress> Inflate(std::string_view input, std::span<char> output) override {
    const size_t given = std::min(input.size(), kMostAtOnce);
    const size_t room = std::min(output.size(), kMostAtOnce);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return Status(StatusCode::kCorrupt,
                    std::string("cannot inflate: ") +
                        (stream_.msg != nullptr ? stream_.msg : "damaged data"));
    return Progress{.consumed = given - stream_.avail_in,
                    .produced = room - stream_.avail_out,
                    .is_end = result == Z_STREAM_END};
  }

 private:
  z_stream stream_{};
};

class ZstdInflater : public Inflater {
 public:
  ZstdInflater() : stream_(ZSTD_createDStream()) {
    HPD_CHECK(stream_ != nullptr);
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  ZstdInflater(const ZstdInflater&) = delete;
  ZstdInflater& operator=(const ZstdInflater&) = delete;

  ~ZstdInflater() override { ZSTD_freeDStream(stream_); }

  Result<Progress> Inflate(std::string_view input, std::span<char> output) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const size_t result = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(result) != 0)
      return Status(StatusCode::kCorrupt,
                    std::string("cannot inflate: ") + ZSTD_getErrorName(result));
    return Progress{.consumed = in.pos, .produced = out.pos, .is_end = result == 0};
  }

 private:
  static constexpr int kMaxWindowLog = 27;  // 128 MiB: what zstd's own tool takes

  ZSTD_DStream* stream_;
};

}  // namespace

Compression CompressionOf(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x1f\x8b"))
    return Compression::kGzip;
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd"))
    return Compression::kZstd;
  return Compression::kNone;
}

uint64_t MaxUnpackRatio() {
  constexpr uint64_t kDefault = 64;
  const char* const text = getenv("HEAPPROFD_MAX_UNPACK_RATIO");
  if (text == nullptr)
    return kDefault;
  uint64_t ratio = 0;
  const char* const end = text + strlen(text);
  const auto [at, error] = std::from_chars(text, end, ratio);
  return error == std::errc() && at == end ? ratio : kDefault;
}

std::string UnpackLimitText() {
  return "more than " + std::to_string(MaxUnpackRatio()) +
         " times its size, as no recording does; HEAPPROFD_MAX_UNPACK_RATIO=0 lifts this "
         "limit";
}

std::unique_ptr<Inflater> Inflater::Create(Compression compression) {
  if (compression == Compression::kZstd)
    return std::make_unique<ZstdInflater>();
  if (compression == Compression::kGzip)
    return std::make_unique<GzipInflater>();
  return std::make_unique<ZlibInflater>();
}

std::string InflateAll(Compression compression,
                       std::string_view input,
                       size_t max_bytes,
                       bool* is_whole) {
  constexpr size_t kStep = size_t{256} << 10;
  const std::unique_ptr<Inflater> inflater = Inflater::Create(compression);
  std::string output;
  *is_whole = false;
  while (output.size() < max_bytes) {
    const size_t done = output.size();
    output.resize(std::min(max_bytes, done + kStep));
    const Result<Inflater::Progress> progress =
        inflater->Inflate(input, std::span(output).subspan(done));
    output.resize(done + (progress.ok() ? progress.value().produced : 0));
    if (!progress.ok())
      break;
    input.remove_prefix(progress.value().consumed);
    if (progress.value().is_end) {
      *is_whole = true;
      break;
    }
    if (progress.value().consumed == 0 && progress.value().produced == 0)
      break;
  }
  return output;
}

}  // namespace heapprofd
