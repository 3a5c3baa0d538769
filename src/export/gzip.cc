#include "export/gzip.h"

#include <zlib.h>

#include <array>

#include "base/files/new_file.h"
#include "base/files/write_all.h"

namespace heapprofd {
namespace {

// From 1 (fast) to 9 (small): half the time of zlib's usual one, for 2 % more bytes of a
// report and 6 % of a pprof file.
constexpr int kLevel = 4;

}  // namespace

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // 16: gzip header instead of zlib's
  HPD_CHECK(bytes.size() <= UINT32_MAX / 2);
  HPD_CHECK(deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, 8,
                         Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  // What it may become at worst would be much more memory than what it becomes.
  std::array<char, 1 << 16> part;
  std::string compressed;
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    result = deflate(&stream, Z_FINISH);
    compressed.append(part.data(), part.size() - stream.avail_out);
  }
  HPD_CHECK(result == Z_STREAM_END);
  deflateEnd(&stream);
  return compressed;
}

Status WriteGzipFile(const FilePlace& place, const std::string& bytes) {
  if (bytes.size() > UINT32_MAX / 2)
    return Status(StatusCode::kUnavailable,
                  "cannot write " + place.path + ": the profile is larger than 2 GiB");
  HPD_TRY_ASSIGN(NewFile file, NewFile::Create(place));
  if (const int error = WriteAll(file.fd(), Gzip(bytes)); error != 0)
    return Status::FromErrno("cannot write " + place.path, error);
  return file.Appear();
}

}  // namespace heapprofd
