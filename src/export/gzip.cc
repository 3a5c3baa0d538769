#include "export/gzip.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>

#include "base/files/write_all.h"
#include "base/scoped_fd.h"

namespace heapprofd {
std::string Gzip(std::string_view bytes, int level) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // 16: gzip header instead of zlib's
  HPD_CHECK(bytes.size() <= UINT32_MAX / 2);
  HPD_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8,
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

Status WriteGzipFile(const std::string& path, const std::string& bytes) {
  if (bytes.size() > UINT32_MAX / 2)
    return Status(StatusCode::kUnavailable,
                  "cannot write " + path + ": the profile is larger than 2 GiB");
  const std::string compressed =
      Gzip(bytes);  // whoever is ended meanwhile leaves no file
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());  // of a run that was interrupted
  ScopedFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid())
    return Status::FromErrno("cannot create " + temporary, errno);
  Status status;
  if (const int error = WriteAll(fd.get(), compressed); error != 0)
    status = Status::FromErrno("cannot write " + path, error);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = Status::FromErrno("cannot rename " + temporary, errno);
  if (!status.ok())
    unlink(temporary.c_str());
  return status;
}

}  // namespace heapprofd
