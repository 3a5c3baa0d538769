#include "trace/trace_file.h"

#include <fcntl.h>

#include <cerrno>

#include <protozero/pbf_writer.hpp>

#include "base/fd_path.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

constexpr size_t kBufferSize = size_t{1} << 20;  // bytes

Status WriteError(const std::string& path, int error_number) {
  Status status = Status::FromErrno("cannot write trace " + path, error_number);
  if (error_number != ENOSPC && error_number != EDQUOT)
    return status;
  return Status(status.code(),
                status.message() + "; free space there or choose another directory");
}

}  // namespace

Result<TraceFile> TraceFile::Create(const FilePlace& place) {
  ScopedFd fd(open(place.at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid())
    return Status::FromErrno("cannot create " + place.path, errno);
  return TraceFile(std::move(fd), place.path);
}

Result<ScopedFd> TraceFile::OpenToRead() const {
  ScopedFd fd(open(FdPath(fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot open trace " + path_, errno);
  return fd;
}

Status TraceFile::Append(const std::string& packet) {
  protozero::pbf_writer writer(buffer_);
  writer.add_message(field::Trace::kPacket, packet);
  return buffer_.size() >= kBufferSize ? Flush() : status_;
}

Status TraceFile::Flush() {
  if (is_in_memory())
    return status_;
  size_t done = 0;
  while (status_.ok() && done < buffer_.size()) {
    const ssize_t written =
        write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      status_ = WriteError(path_, written < 0 ? errno : EIO);
    else
      done += static_cast<size_t>(written);
  }
  size_ += buffer_.size();
  buffer_.clear();
  return status_;
}

}  // namespace heapprofd
