#include "record/dump_spool.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace heapprofd {
namespace {

struct FixedPart {
  uint64_t name_size;
  uint64_t callsites;
  uint64_t peaks;
  uint64_t sampling_interval;
  uint64_t original_sampling_interval;
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t peak_ns;
  uint64_t exact_alloc_calls;
  uint64_t exact_alloc_bytes;
  BoundedBytes peak_total;
  double certain_live;
  double possible_live;
};

struct CallsiteRow {
  uint64_t id;
  CallsiteTotals totals;
};

struct PeakRow {
  uint64_t id;
  Estimate estimate;
};

template <typename T>
void Put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Status WriteAt(int fd, const std::string& bytes, uint64_t position) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = pwrite(fd, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(position + done));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return Status::FromErrno("cannot keep a dump until the recording ends", errno);
    done += static_cast<size_t>(written);
  }
  return {};
}

Status ReadAt(int fd, void* to, size_t size, uint64_t position) {
  auto* bytes = static_cast<char*>(to);
  for (size_t done = 0; done < size;) {
    const ssize_t got =
        pread(fd, bytes + done, size - done, static_cast<off_t>(position + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return Status::FromErrno("cannot read a dump back", got < 0 ? errno : EIO);
    done += static_cast<size_t>(got);
  }
  return {};
}

}  // namespace

Status DumpSpool::Open() {
  if (fd_.valid())
    return {};
  fd_ = ScopedFd(open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd_.valid())
    return {};
  std::string name = directory_ + "/.dumps-XXXXXX";  // a file system without O_TMPFILE
  fd_ = ScopedFd(mkostemp(name.data(), O_CLOEXEC));
  if (!fd_.valid())
    return Status::FromErrno("cannot create a temporary file in " + directory_, errno);
  unlink(name.c_str());
  return {};
}

Result<uint64_t> DumpSpool::Append(const HeapDump& dump) {
  HPD_TRY(Open());
  std::string bytes;
  Put(bytes, FixedPart{.name_size = dump.heap_name.size(),
                       .callsites = dump.callsites.size(),
                       .peaks = dump.peak.size(),
                       .sampling_interval = dump.sampling_interval,
                       .original_sampling_interval = dump.original_sampling_interval,
                       .start_ns = dump.start_ns,
                       .end_ns = dump.end_ns,
                       .peak_ns = dump.peak_ns,
                       .exact_alloc_calls = dump.exact_alloc_calls,
                       .exact_alloc_bytes = dump.exact_alloc_bytes,
                       .peak_total = dump.peak_total,
                       .certain_live = dump.certain_live,
                       .possible_live = dump.possible_live});
  bytes += dump.heap_name;
  for (const auto& [id, totals] : dump.callsites)
    Put(bytes, CallsiteRow{.id = id, .totals = totals});
  for (const auto& [id, estimate] : dump.peak)
    Put(bytes, PeakRow{.id = id, .estimate = estimate});
  HPD_TRY(WriteAt(fd_.get(), bytes, end_));
  const uint64_t position = end_;
  end_ += bytes.size();
  return position;
}

Result<HeapDump> DumpSpool::Read(uint64_t position) const {
  FixedPart fixed{};
  HPD_TRY(ReadAt(fd_.get(), &fixed, sizeof(fixed), position));
  position += sizeof(fixed);
  HeapDump dump;
  dump.heap_name.resize(fixed.name_size);
  HPD_TRY(ReadAt(fd_.get(), dump.heap_name.data(), fixed.name_size, position));
  position += fixed.name_size;
  std::vector<CallsiteRow> rows(fixed.callsites);
  HPD_TRY(ReadAt(fd_.get(), rows.data(), rows.size() * sizeof(rows[0]), position));
  position += rows.size() * sizeof(rows[0]);
  std::vector<PeakRow> peaks(fixed.peaks);
  HPD_TRY(ReadAt(fd_.get(), peaks.data(), peaks.size() * sizeof(peaks[0]), position));
  for (const CallsiteRow& row : rows)
    dump.callsites.emplace(static_cast<CallsiteId>(row.id), row.totals);
  for (const PeakRow& row : peaks)
    dump.peak.emplace(static_cast<CallsiteId>(row.id), row.estimate);
  dump.sampling_interval = fixed.sampling_interval;
  dump.original_sampling_interval = fixed.original_sampling_interval;
  dump.start_ns = fixed.start_ns;
  dump.end_ns = fixed.end_ns;
  dump.peak_ns = fixed.peak_ns;
  dump.exact_alloc_calls = fixed.exact_alloc_calls;
  dump.exact_alloc_bytes = fixed.exact_alloc_bytes;
  dump.peak_total = fixed.peak_total;
  dump.certain_live = fixed.certain_live;
  dump.possible_live = fixed.possible_live;
  return dump;
}

}  // namespace heapprofd
