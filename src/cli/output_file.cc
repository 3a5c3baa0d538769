#include "cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files/write_all.h"

namespace heapprofd {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

OutputFile::OutputFile(ScopedFd fd, std::string path, std::string temporary)
    : fd_(std::move(fd)), path_(std::move(path)), temporary_(std::move(temporary)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      buffer_(std::exchange(other.buffer_, {})),
      status_(std::move(other.status_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty())
    unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::Create(const std::string& path) {
  if (path == "-") {
    ScopedFd fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!fd.valid())
      return Status::FromErrno("cannot write to standard output", errno);
    return OutputFile(std::move(fd), "standard output", "");
  }
  std::string temporary = path + ".XXXXXX";
  ScopedFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot create " + path, errno);
  return OutputFile(std::move(fd), path, std::move(temporary));
}

Status OutputFile::Flush() {
  WriteOut(buffer_);
  buffer_.clear();
  return status_;
}

void OutputFile::WriteOut(std::string_view bytes) {
  if (!status_.ok())
    return;
  if (const int error = WriteAll(fd_.get(), bytes); error != 0)
    status_ = Status::FromErrno("cannot write " + path_, error);
}

Status OutputFile::Write(std::string_view bytes) {
  if (bytes.size() >= kBufferBytes) {
    HPD_TRY(Flush());
    WriteOut(bytes);
    return status_;
  }
  buffer_.append(bytes);
  return buffer_.size() >= kBufferBytes ? Flush() : status_;
}

Status OutputFile::Finish() {
  HPD_TRY(Flush());
  if (temporary_.empty())
    return {};
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    status_ = Status::FromErrno("cannot rename " + temporary_, errno);
    return status_;
  }
  temporary_.clear();
  return {};
}

}  // namespace heapprofd
