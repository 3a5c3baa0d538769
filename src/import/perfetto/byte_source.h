// Where the bytes of a trace come from: a file or a pipe, a member of a bundle, and
// behind each of them decompression.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "import/perfetto/inflate.h"

namespace heapprofd {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to output.size() bytes (> 0); 0 at the end. kIo: cannot be read; kCorrupt: cannot
  // be inflated further.
  virtual Result<size_t> Read(std::span<char> output) = 0;

  // Reading may wait for someone else, for as long as they like.
  virtual bool may_block() const { return false; }

  // Of the file itself, as it is stored: what was read so far. From any thread.
  virtual uint64_t stored_bytes() const { return 0; }

  // Reads until `output` is full or the end.
  Result<size_t> ReadFully(std::span<char> output);
};

// The file that `path` means: a directory stands for the recording that heap_profile has
// left in it.
std::string PathOfTrace(const std::string& path);

class FileSource : public ByteSource {
 public:
  // What PathOfTrace() says; "-" is standard input.
  static Result<std::unique_ptr<FileSource>> Open(const std::string& path);

  FileSource(ScopedFd fd, std::string path);

  Result<size_t> Read(std::span<char> output) override;

  bool may_block() const override { return !is_regular_; }

  uint64_t stored_bytes() const override { return stored_bytes_; }

 private:
  ScopedFd fd_;
  std::string path_;
  bool is_regular_;
  std::atomic<uint64_t> stored_bytes_ = 0;
};

class MemorySource : public ByteSource {
 public:
  // The bytes must outlive this.
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}

  Result<size_t> Read(std::span<char> output) override;

  uint64_t stored_bytes() const override { return stored_bytes_; }

 private:
  std::string_view bytes_;
  std::atomic<uint64_t> stored_bytes_ = 0;
};

// Bytes that were read ahead, then those of another source, `limit` bytes in all.
class PrefixedSource : public ByteSource {
 public:
  // `source` must outlive this.
  PrefixedSource(std::string prefix, ByteSource* source, uint64_t limit = UINT64_MAX)
      : prefix_(std::move(prefix)), source_(source), left_(limit) {}

  Result<size_t> Read(std::span<char> output) override;

  bool may_block() const override { return source_->may_block(); }

  uint64_t stored_bytes() const override { return source_->stored_bytes(); }

 private:
  std::string prefix_;
  ByteSource* source_;
  uint64_t left_;
};

// The source's bytes, decompressed where they are gzip or zstd. Compressed streams may
// follow each other, and plain bytes may follow them.
class InflatingSource : public ByteSource {
 public:
  // `source` must outlive this.
  explicit InflatingSource(ByteSource* source) : source_(source) {}

  // kCorrupt also for a bomb: what inflates to more than any trace would.
  Result<size_t> Read(std::span<char> output) override;

  bool may_block() const override { return source_->may_block(); }

  uint64_t stored_bytes() const override { return source_->stored_bytes(); }

  // True when the last bytes that were read may begin a compressed stream: they were
  // plain and look like it. Takes them back; reading goes on with what they contain.
  bool RestartAt(std::string_view rest);

  // The source ended in the middle of a compressed stream.
  bool is_truncated() const { return inflater_ != nullptr && at_end_; }

 private:
  Status Fill(size_t min_bytes);
  Result<size_t> ReadPlain(std::span<char> output);
  Result<size_t> ReadInflated(std::span<char> output);

  ByteSource* source_;
  std::string input_;  // read but not yet given away
  size_t input_begin_ = 0;
  bool at_end_ = false;  // of the source
  bool is_plain_ = false;
  std::unique_ptr<Inflater> inflater_;
  InflationBudget budget_;
};

}  // namespace heapprofd
