// The bytes of a dump in memory, however large: a file is mapped. What is compressed,
// comes through a pipe, or may be changed by other users meanwhile is first written to a
// temporary file without a name, so that the kernel may take its pages back.
#pragma once

#include <sys/stat.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd::hprof {

class MappedInput {
 public:
  // "-" is standard input.
  static Result<MappedInput> Open(const std::string& path);

  // Of a descriptor that can be mapped; `name` is for messages.
  static Result<MappedInput> Map(ScopedFd fd, const std::string& name);

  // All of `parts` in this order.
  static Result<MappedInput> Concatenate(std::initializer_list<std::string_view> parts,
                                         const std::string& name);

  MappedInput(MappedInput&& other) noexcept;
  MappedInput& operator=(MappedInput&&) = delete;
  ~MappedInput();

  std::string_view bytes() const { return bytes_; }

  // kIo: some of the bytes that were read since it was opened are zeros now, because the
  // file has no such bytes any more.
  Status Check() const;

  // What the file was when it was opened; nullopt: the bytes are a copy.
  const std::optional<struct stat>& file() const { return file_; }

  // Takes no memory until it is read again: the file has it all.
  void Release() const;

  // "it ends in the middle of a compressed stream", when it does; the bytes are those
  // before that.
  const std::string& damage() const { return damage_; }

 private:
  MappedInput() = default;

  std::string_view bytes_;
  std::string damage_;
  ScopedFd fd_;
  std::string name_;
  std::optional<struct stat> file_;
};

}  // namespace heapprofd::hprof
