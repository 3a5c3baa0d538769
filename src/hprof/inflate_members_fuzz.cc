// Hostile gzip files: what several threads inflate is what one would have, and what is
// inflated at once is what is inflated by pieces.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "hprof/inflate_members.h"
#include "import/perfetto/byte_source.h"
#include "import/perfetto/inflate.h"

namespace heapprofd {
namespace {

// libdeflate takes streams that zlib refuses. Of those that both take the bytes are the
// same.
void CheckAtOnce(std::string_view bytes) {
  constexpr size_t kRoom = size_t{1} << 20;
  static WholeInflater inflater;
  static std::string plain(kRoom, '\0');
  static std::string expected(kRoom, '\0');
  const std::optional<Inflater::Progress> whole = inflater.Inflate(bytes, plain);
  if (!whole)
    return;
  HPD_CHECK(whole->is_end && whole->consumed <= bytes.size() && whole->produced <= kRoom);
  const Result<Inflater::Progress> progress =
      Inflater::Create(Compression::kGzip)->Inflate(bytes, expected);
  if (!progress.ok() || !progress.value().is_end)
    return;
  HPD_CHECK(progress.value().consumed == whole->consumed &&
            progress.value().produced == whole->produced);
  HPD_CHECK(plain.compare(0, whole->produced, expected, 0, whole->produced) == 0);
}

void CheckMembers(std::string_view bytes) {
  const ScopedFd to(memfd_create("fuzz", MFD_CLOEXEC));
  hprof::InflatedPart part;
  HPD_CHECK(hprof::InflateMembers(bytes, to.get(), &part, /*share_bytes=*/1) == 0);
  HPD_CHECK(part.compressed <= bytes.size());
  std::string inflated(part.inflated, '\0');
  HPD_CHECK(pread(to.get(), inflated.data(), inflated.size(), 0) ==
            static_cast<ssize_t>(inflated.size()));
  MemorySource source(bytes.substr(0, part.compressed));
  InflatingSource inflating(&source);
  std::string expected(part.inflated, '\0');
  const Result<size_t> count = inflating.ReadFully(expected);
  HPD_CHECK(!count.ok() || (count.value() == expected.size() && inflated == expected));
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  heapprofd::CheckAtOnce(bytes);
  heapprofd::CheckMembers(bytes);
  return 0;
}
