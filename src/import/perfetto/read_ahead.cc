#include "import/perfetto/read_ahead.h"

#include <algorithm>
#include <cstring>

namespace heapprofd {

void ReadAheadSource::Fill(Block* block) {
  if (block->bytes == nullptr)
    block->bytes = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  block->size = 0;
  while (block->size < kBlockBytes && !block->is_last) {
    Result<size_t> count = source_->Read(
        std::span(block->bytes.get() + block->size, kBlockBytes - block->size));
    block->is_last = !count.ok() || count.value() == 0;
    if (count.ok())
      block->size += count.value();
    else
      block->status = std::move(count).status();
  }
}

void* ReadAheadSource::Run(void* self) {
  static_cast<ReadAheadSource*>(self)->FillBlocks();
  return nullptr;
}

void ReadAheadSource::FillBlocks() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopped_ || filled_ - consumed_ < kBlocks; });
    if (is_stopped_)
      return;
    Block& block = blocks_[filled_ % kBlocks];
    lock.unlock();
    Fill(&block);
    lock.lock();
    ++filled_;
    changed_.notify_one();
    if (block.is_last)
      return;
  }
}

// Without a thread (there may be none to be had) blocks are filled when they are needed.
void ReadAheadSource::Start() {
  is_started_ = true;
  Fill(&blocks_[0]);
  filled_ = 1;
  if (!blocks_[0].is_last)
    has_thread_ = pthread_create(&thread_, nullptr, Run, this) == 0;
}

// The block at the reading end, as soon as it is filled.
ReadAheadSource::Block& ReadAheadSource::Current() {
  if (!is_started_)
    Start();
  Block& block = blocks_[consumed_ % kBlocks];
  std::unique_lock<std::mutex> lock(mutex_);
  if (filled_ == consumed_ && !has_thread_) {
    Fill(&block);
    ++filled_;
  }
  changed_.wait(lock, [this] { return filled_ > consumed_; });
  return block;
}

void ReadAheadSource::GoOn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++consumed_;
  position_ = 0;
  changed_.notify_one();
}

Result<size_t> ReadAheadSource::Read(std::span<char> output) {
  while (!is_stopped_) {
    const Block& block = Current();
    const size_t count = std::min(output.size(), block.size - position_);
    if (count > 0) {
      memcpy(output.data(), block.bytes.get() + position_, count);
      position_ += count;
      return count;
    }
    if (block.is_last)
      return block.status.ok() ? Result<size_t>(size_t{0}) : Result<size_t>(block.status);
    GoOn();
  }
  return size_t{0};
}

void ReadAheadSource::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopped_ = true;
    changed_.notify_one();
  }
  if (has_thread_)
    pthread_join(thread_, nullptr);
  has_thread_ = false;
}

}  // namespace heapprofd
