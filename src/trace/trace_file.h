// What is behind a trace, a file or memory: packets are appended; whatever was appended is
// a valid trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class TraceFile {
 public:
  // Creates it for its owner only; an existing file is an error.
  static Result<TraceFile> Create(const FilePlace& place);

  // Appends to an open file; `path` is for messages.
  TraceFile(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  // Keeps all in memory of this process: where no file can be written.
  static TraceFile InMemory() { return TraceFile(ScopedFd(), ""); }

  // Appends one serialized TracePacket. Errors stick: they are reported here and by every
  // later call.
  Status Append(const std::string& packet);

  bool is_in_memory() const { return !fd_.valid(); }

  // To be read from its begin, whatever its name stands for by now. Of a file.
  Result<ScopedFd> OpenToRead() const;

  // For messages.
  const std::string& path() const { return path_; }

  // All that was appended. Of one in memory.
  std::string_view bytes() const { return buffer_; }

  // Bytes appended so far.
  uint64_t size() const { return size_ + buffer_.size(); }

  // Writes what is buffered, if there is a file.
  Status Flush();

 private:
  ScopedFd fd_;
  std::string path_;
  std::string buffer_;
  uint64_t size_ = 0;  // bytes flushed
  Status status_;
};

}  // namespace heapprofd
