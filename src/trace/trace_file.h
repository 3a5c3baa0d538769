// The file behind a trace: packets are appended; whatever was appended is a valid trace.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class TraceFile {
 public:
  // Creates `path` for its owner only; an existing file is an error.
  static Result<TraceFile> Create(const std::string& path);

  // Appends to an open file; `path` is for messages.
  TraceFile(ScopedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  // Appends one serialized TracePacket. Errors stick: they are reported here and by every
  // later call.
  Status Append(const std::string& packet);

  // Where this process can read it, whatever its name stands for by now.
  std::string own_path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

  // Bytes appended so far.
  uint64_t size() const { return size_ + buffer_.size(); }

  // Writes what is buffered.
  Status Flush();

 private:
  ScopedFd fd_;
  std::string path_;
  std::string buffer_;
  uint64_t size_ = 0;  // bytes flushed
  Status status_;
};

}  // namespace heapprofd
