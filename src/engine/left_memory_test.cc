#include "engine/left_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/memory_files.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLeftRingSize = 65536;

// What a client has of the same file.
ClientBlock* MapAsClient(const SharedMemory& memory) {
  void* base = mmap(nullptr, kRingOffset + kLeftRingSize, PROT_READ | PROT_WRITE,
                    MAP_SHARED, memory.client_fd(), 0);
  return base == MAP_FAILED ? nullptr : static_cast<ClientBlock*>(base);
}

TEST(LeftMemoryTest, IsInUseAsLongAsAForkedChildHasItMapped) {
  auto created = SharedMemory::Create(kLeftRingSize);
  ASSERT_TRUE(created.ok()) << created.status().message();
  ClientBlock* client = MapAsClient(*created.value());
  ASSERT_NE(client, nullptr);
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(fds[1]);
    char word = 0;
    static_cast<void>(read(fds[0], &word, 1));
    client->ring.counted_children.store(3);
    _exit(0);
  }
  close(fds[0]);
  munmap(client, kRingOffset + kLeftRingSize);
  const LeftMemory left(SharedMemory::TakeClientFile(std::move(created).value()));
  ASSERT_NE(left.client(), nullptr);
  EXPECT_TRUE(left.IsInUse());
  EXPECT_EQ(left.client()->ring.counted_children.load(), 0u);
  close(fds[1]);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(left.IsInUse());
  EXPECT_EQ(left.client()->ring.counted_children.load(), 3u);
}

TEST(LeftMemoryTest, IsNotInUseWhenNobodyHasIt) {
  auto created = SharedMemory::Create(kLeftRingSize);
  ASSERT_TRUE(created.ok()) << created.status().message();
  const LeftMemory left(SharedMemory::TakeClientFile(std::move(created).value()));
  EXPECT_FALSE(left.IsInUse());
}

}  // namespace
}  // namespace heapprofd
