#include "import/perfetto/inflate.h"

#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace heapprofd {
namespace {

class ZlibInflater : public Inflater {
 public:
  explicit ZlibInflater(Compression compression) {
    constexpr int kWindow = 15;
    constexpr int kGzipHeader = 16;
    HPD_CHECK(inflateInit2(&stream_, compression == Compression::kGzip
                                         ? kWindow + kGzipHeader
                                         : kWindow) == Z_OK);
  }

  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;

  ~ZlibInflater() override { inflateEnd(&stream_); }

  Result<Progress> Inflate(std::string_view input, std::span<char> output) override {
    constexpr size_t kMax = size_t{1} << 30;
    const size_t given = std::min(input.size(), kMax);
    const size_t room = std::min(output.size(), kMax);
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
  return std::make_unique<ZlibInflater>(compression);
}

WholeInflater::WholeInflater() : decompressor_(libdeflate_alloc_decompressor()) {
  HPD_CHECK(decompressor_ != nullptr);
}

WholeInflater::~WholeInflater() {
  libdeflate_free_decompressor(decompressor_);
}

std::optional<Inflater::Progress> WholeInflater::Inflate(std::string_view input,
                                                         std::span<char> output) {
  constexpr size_t kFlags = 3;           // of the header
  constexpr int kHasHeaderChecksum = 2;  // which libdeflate does not look at
  if (input.size() <= kFlags || (input[kFlags] & kHasHeaderChecksum) != 0)
    return std::nullopt;
  Inflater::Progress progress{.is_end = true};
  if (libdeflate_gzip_decompress_ex(decompressor_, input.data(), input.size(),
                                    output.data(), output.size(), &progress.consumed,
                                    &progress.produced) != LIBDEFLATE_SUCCESS)
    return std::nullopt;
  return progress;
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
