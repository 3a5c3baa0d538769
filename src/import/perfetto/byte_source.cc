#include "import/perfetto/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heapprofd {
namespace {

constexpr size_t kInputBytes = size_t{64} << 10;
constexpr size_t kMagicBytes = 4;

}  // namespace

Result<size_t> ByteSource::ReadFully(std::span<char> output) {
  size_t done = 0;
  while (done < output.size()) {
    HPD_TRY_ASSIGN(const size_t count, Read(output.subspan(done)));
    if (count == 0)
      break;
    done += count;
  }
  return done;
}

std::string PathOfTrace(const std::string& path) {
  struct stat info = {};
  const bool is_directory = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return is_directory ? path + "/raw-trace" : path;
}

Result<std::unique_ptr<FileSource>> FileSource::Open(const std::string& path) {
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "standard input" : PathOfTrace(path);
  ScopedFd fd(is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                       : open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot open trace " + name, errno);
  return std::make_unique<FileSource>(std::move(fd), name);
}

FileSource::FileSource(ScopedFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)) {
  struct stat info = {};
  is_regular_ = fstat(fd_.get(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<size_t> FileSource::Read(std::span<char> output) {
  while (true) {
    const ssize_t count = read(fd_.get(), output.data(), output.size());
    if (count >= 0) {
      stored_bytes_ += static_cast<size_t>(count);
      return static_cast<size_t>(count);
    }
    if (errno != EINTR)
      return Status::FromErrno("cannot read trace " + path_, errno);
  }
}

Result<size_t> MemorySource::Read(std::span<char> output) {
  const size_t count = std::min(output.size(), bytes_.size());
  if (count > 0)
    memcpy(output.data(), bytes_.data(), count);
  bytes_.remove_prefix(count);
  stored_bytes_ += count;
  return count;
}

Result<size_t> PrefixedSource::Read(std::span<char> output) {
  output = output.subspan(0, std::min<uint64_t>(output.size(), left_));
  if (output.empty())
    return size_t{0};
  size_t count = std::min(output.size(), prefix_.size());
  if (count > 0) {
    memcpy(output.data(), prefix_.data(), count);
    prefix_.erase(0, count);
  } else {
    HPD_TRY_ASSIGN(count, source_->Read(output));
  }
  left_ -= count;
  return count;
}

Status InflatingSource::Fill(size_t min_bytes) {
  while (input_.size() - input_begin_ < min_bytes && !at_end_) {
    input_.erase(0, input_begin_);
    input_begin_ = 0;
    const size_t old_size = input_.size();
    input_.resize(old_size + kInputBytes);
    Result<size_t> count = source_->Read(std::span(input_).subspan(old_size));
    input_.resize(old_size + (count.ok() ? count.value() : 0));
    if (!count.ok())
      return std::move(count).status();
    at_end_ = count.value() == 0;
  }
  return {};
}

Result<size_t> InflatingSource::ReadPlain(std::span<char> output) {
  const size_t count = std::min(output.size(), input_.size() - input_begin_);
  if (count == 0)
    return at_end_ ? size_t{0} : source_->Read(output);
  memcpy(output.data(), input_.data() + input_begin_, count);
  input_begin_ += count;
  return count;
}

Result<size_t> InflatingSource::ReadInflated(std::span<char> output) {
  while (true) {
    HPD_TRY(Fill(1));
    const std::string_view input = std::string_view(input_).substr(input_begin_);
    HPD_TRY_ASSIGN(const Inflater::Progress progress, inflater_->Inflate(input, output));
    input_begin_ += progress.consumed;
    if (!budget_.Take(progress.consumed, progress.produced))
      return Status(StatusCode::kCorrupt, "it inflates to " + UnpackLimitText());
    if (progress.is_end)
      inflater_.reset();
    if (progress.produced > 0 || progress.is_end)
      return progress.produced;
    if (input.empty() && at_end_)
      return size_t{0};
    if (progress.consumed == 0 && !input.empty())
      return Status(StatusCode::kCorrupt, "cannot inflate: damaged data");
  }
}

Result<size_t> InflatingSource::Read(std::span<char> output) {
  while (true) {
    if (is_plain_)
      return ReadPlain(output);
    if (inflater_ == nullptr) {
      HPD_TRY(Fill(kMagicBytes));
      const std::string_view input = std::string_view(input_).substr(input_begin_);
      if (input.empty())
        return size_t{0};
      const Compression compression = CompressionOf(input);
      is_plain_ = compression == Compression::kNone;
      if (is_plain_)
        continue;
      inflater_ = Inflater::Create(compression);
    }
    HPD_TRY_ASSIGN(const size_t count, ReadInflated(output));
    if (count > 0 || inflater_ != nullptr)
      return count;
  }
}

bool InflatingSource::RestartAt(std::string_view rest) {
  if (!is_plain_ || CompressionOf(rest) == Compression::kNone)
    return false;
  input_ = std::string(rest) + input_.substr(input_begin_);
  input_begin_ = 0;
  is_plain_ = false;
  return true;
}

}  // namespace heapprofd
