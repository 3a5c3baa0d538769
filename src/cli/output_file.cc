#include "cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files/named_output.h"
#include "base/files/write_all.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

bool IsBinary(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b") || bytes.find('\0') != std::string_view::npos;
}

}  // namespace

Result<OutputFile> OutputFile::Create(const FilePlace& place) {
  HPD_TRY_ASSIGN(NewFile file, NewFile::Create(place));
  return OutputFile(place.path, {}, std::move(file));
}

Result<OutputFile> OutputFile::CreateNamed(const std::string& path) {
  if (path == "-") {
    ScopedFd fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!fd.valid())
      return Status::FromErrno("cannot write to standard output", errno);
    return OutputFile("standard output", std::move(fd), std::nullopt);
  }
  HPD_TRY_ASSIGN(NamedOutput output, OpenNamedOutput(path));
  return OutputFile(path, std::move(output.stream), std::move(output.file));
}

Status OutputFile::Flush() {
  WriteOut(buffer_);
  buffer_.clear();
  return status_;
}

void OutputFile::WriteOut(std::string_view bytes) {
  if (status_.ok() && is_terminal_ && IsBinary(bytes))
    status_ = Status(StatusCode::kInvalidArgument,
                     "cannot write " + path_ +
                         ": it is a terminal, and this is no text; name a file by -o");
  if (!status_.ok())
    return;
  const std::string printable = is_terminal_ ? PrintableLines(bytes) : "";
  if (is_terminal_)
    bytes = printable;
  if (const int error = WriteAll(file_ ? file_->fd() : stream_.get(), bytes); error != 0)
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

Status OutputFile::Settle() {
  HPD_TRY(Flush());
  if (file_ && fdatasync(file_->fd()) != 0)
    status_ = Status::FromErrno("cannot write " + path_, errno);
  return status_;
}

Status OutputFile::Finish() {
  HPD_TRY(Flush());
  if (file_)
    status_ = file_->Appear();
  return status_;
}

}  // namespace heapprofd
