// Reads a source on a thread of its own, so that inflating a file and importing what it
// holds go on at the same time.
#pragma once

#include <pthread.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "import/perfetto/byte_source.h"

namespace heapprofd {

// The bytes of another source. A thread is started when the first block is full, and
// reads at most kBlocks blocks ahead.
class ReadAheadSource : public ByteSource {
 public:
  // `source` must outlive this, and is not to be used by anyone else meanwhile.
  explicit ReadAheadSource(ByteSource* source) : source_(source) {}

  ReadAheadSource(const ReadAheadSource&) = delete;
  ReadAheadSource& operator=(const ReadAheadSource&) = delete;

  ~ReadAheadSource() override { Stop(); }

  Result<size_t> Read(std::span<char> output) override;

  uint64_t stored_bytes() const override { return source_->stored_bytes(); }

  // Ends the thread; the source may be used again. Nothing can be read after that.
  void Stop();

 private:
  static constexpr size_t kBlocks = 4;
  static constexpr size_t kBlockBytes = size_t{1} << 20;

  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    Status status;
    bool is_last = false;  // the source has ended, or failed
  };

  static void* Run(void* self);
  void Fill(Block* block);
  void FillBlocks();
  void Start();
  Block& Current();
  void GoOn();

  ByteSource* source_;
  pthread_t thread_ = {};
  bool has_thread_ = false;
  bool is_started_ = false;  // the first block was read
  size_t position_ = 0;      // in the first full block

  std::mutex mutex_;
  std::condition_variable changed_;
  // A ring; guarded by mutex_ are the counts, a block belongs to one side at a time.
  std::array<Block, kBlocks> blocks_;
  size_t filled_ = 0;    // blocks ever filled
  size_t consumed_ = 0;  // blocks ever used up
  bool is_stopped_ = false;
};

}  // namespace heapprofd
