#include "hprof/mapped_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/files/temporary_directory.h"
#include "base/files/write_all.h"
#include "hprof/inflate_members.h"
#include "hprof/lost_pages.h"
#include "import/perfetto/byte_source.h"
#include "import/perfetto/read_ahead.h"

namespace heapprofd::hprof {
namespace {

Result<ScopedFd> OpenInput(const std::string& path) {
  ScopedFd fd(path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot open " + path, errno);

  struct stat status {};

  if (fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode))
    return Status::FromErrno("cannot read " + path, EISDIR);
  return fd;
}

// What others may change while it is read is examined from a copy: it is walked several
// times, and each walk relies on what the one before has found. Who is in a group is not
// known, and where a file has an access control list, the group's bits are the most that
// anybody in it may do.
bool MayBeChangedByOthers(const struct stat& status) {
  const bool is_theirs = status.st_uid != geteuid() && status.st_uid != 0;
  return is_theirs || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

bool MustBeCopied(int fd) {
  struct stat status {};

  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      MayBeChangedByOthers(status) || lseek(fd, 0, SEEK_CUR) != 0)
    return true;
  std::array<char, 4> first{};
  const ssize_t count = pread(fd, first.data(), first.size(), 0);
  return count > 0 &&
         CompressionOf({first.data(), static_cast<size_t>(count)}) != Compression::kNone;
}

Status CannotWrite(const std::string& directory, int error) {
  return Status::FromErrno("cannot write a temporary file in " + directory, error);
}

Status WriteTo(int temporary, std::string_view bytes, const std::string& directory) {
  const int error = WriteAll(temporary, bytes);
  return error == 0 ? Status() : CannotWrite(directory, error);
}

Result<ScopedFd> MakeTemporary(const std::string& directory) {
  ScopedFd file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid())
    return Status::FromErrno("cannot make a temporary file in " + directory, errno);
  return file;
}

// As much as can be inflated by all processors at once. Both files then stand behind it.
Status CopyMembers(const ScopedFd& from,
                   const std::string& path,
                   const ScopedFd& copy,
                   const std::string& directory) {
  ScopedFd own(fcntl(from.get(), F_DUPFD_CLOEXEC, 0));
  HPD_TRY_ASSIGN(const MappedInput input, MappedInput::Map(std::move(own), path));
  InflatedPart part;
  if (const int error = InflateMembers(input.bytes(), copy.get(), &part); error != 0)
    return CannotWrite(directory, error);
  HPD_TRY(input.Check());
  const auto inflated = static_cast<off_t>(part.inflated);
  if (ftruncate(copy.get(), inflated) != 0 || lseek(copy.get(), inflated, SEEK_SET) < 0 ||
      lseek(from.get(), static_cast<off_t>(part.compressed), SEEK_SET) < 0)
    return CannotWrite(directory, errno);
  return {};
}

bool HasMembers(int fd) {
  struct stat status {};

  std::array<char, 4> first{};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         lseek(fd, 0, SEEK_CUR) == 0 &&
         pread(fd, first.data(), first.size(), 0) == static_cast<ssize_t>(first.size()) &&
         CompressionOf({first.data(), first.size()}) == Compression::kGzip;
}

// All of the source, to where the file stands.
Status CopyRest(ByteSource& source,
                const ScopedFd& copy,
                const std::string& directory,
                std::string* damage) {
  std::string piece(size_t{1} << 20, '\0');
  while (true) {
    const Result<size_t> count = source.Read(piece);
    if (!count.ok() && count.status().code() != StatusCode::kCorrupt)
      return count.status();
    if (!count.ok())
      *damage = count.status().message();
    if (!count.ok() || count.value() == 0)
      return {};
    HPD_TRY(
        WriteTo(copy.get(), std::string_view(piece).substr(0, count.value()), directory));
  }
}

// A file without a name that has all that can be read and inflated.
Result<ScopedFd> Copy(ScopedFd from, const std::string& path, std::string* damage) {
  const std::string directory = NamelessDirectory();
  HPD_TRY_ASSIGN(ScopedFd copy, MakeTemporary(directory));
  if (HasMembers(from.get()))
    HPD_TRY(CopyMembers(from, path, copy, directory));
  FileSource file(std::move(from), path);
  InflatingSource inflating(&file);
  if (file.may_block()) {
    HPD_TRY(CopyRest(inflating, copy, directory, damage));
  } else {  // one thread inflates, one writes
    ReadAheadSource ahead(&inflating);
    HPD_TRY(CopyRest(ahead, copy, directory, damage));
  }
  if (inflating.is_truncated())
    *damage = "it ends in the middle of a compressed stream";
  return copy;
}

}  // namespace

Result<MappedInput> MappedInput::Open(const std::string& path) {
  HPD_TRY_ASSIGN(ScopedFd fd, OpenInput(path));
  std::string damage;
  const bool is_copy = MustBeCopied(fd.get());
  if (is_copy) {
    HPD_TRY_ASSIGN(fd, Copy(std::move(fd), path, &damage));
  }
  HPD_TRY_ASSIGN(MappedInput input, Map(std::move(fd), path));
  input.damage_ = std::move(damage);
  if (is_copy)
    input.file_.reset();
  return input;
}

Result<MappedInput> MappedInput::Concatenate(
    std::initializer_list<std::string_view> parts, const std::string& name) {
  const std::string directory = NamelessDirectory();
  HPD_TRY_ASSIGN(ScopedFd file, MakeTemporary(directory));
  for (const std::string_view part : parts)
    HPD_TRY(WriteTo(file.get(), part, directory));
  HPD_TRY_ASSIGN(MappedInput input, Map(std::move(file), name));
  input.file_.reset();
  return input;
}

Result<MappedInput> MappedInput::Map(ScopedFd fd, const std::string& name) {
  struct stat status {};

  if (fstat(fd.get(), &status) != 0)
    return Status::FromErrno("cannot read " + name, errno);
  MappedInput input;
  input.file_ = status;
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0)
    return input;
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED)
    return Status::FromErrno("cannot map " + name, errno);
  madvise(memory, size, MADV_SEQUENTIAL);  // a wish
  input.bytes_ = {static_cast<const char*>(memory), size};
  input.fd_ = std::move(fd);
  input.name_ = name;
  if (!GuardPages(input.bytes_))
    return Status(StatusCode::kUnavailable,
                  "cannot open " + name + ": " + std::to_string(kMostGuarded) +
                      " heap dumps are open already; open fewer at a time");
  return input;
}

void MappedInput::Release() const {
  if (!bytes_.empty())  // a wish
    madvise(const_cast<char*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

Status MappedInput::Check() const {
  if (!HasLostPages(bytes_))
    return {};

  struct stat status {};

  const bool is_shorter = fstat(fd_.get(), &status) == 0 &&
                          static_cast<uint64_t>(status.st_size) < bytes_.size();
  return Status(
      StatusCode::kIo,
      "cannot read " + name_ +
          (is_shorter ? ": it was shortened while it was read; read a copy of it"
                      : ": the system could not read a part of it"));
}

MappedInput::MappedInput(MappedInput&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      damage_(std::move(other.damage_)),
      fd_(std::move(other.fd_)),
      name_(std::move(other.name_)),
      file_(other.file_) {}

MappedInput::~MappedInput() {
  if (bytes_.empty())
    return;
  UnguardPages(bytes_);
  munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace heapprofd::hprof
