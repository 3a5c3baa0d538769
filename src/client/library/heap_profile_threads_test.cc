// The functions of heap_profile.h from many threads at once while sessions begin and end;
// under the thread sanitizer in its preset. The engine's side is the handshake alone:
// what it reads of a ring is tested elsewhere.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <heapprofd/heap_profile.h>

#include "client/test_welcome.h"
#include "wire/handshake.h"
#include "wire/service_place.h"
#include "wire/shared_memory.h"

// When a session ends, nobody's memory is mapped in place of its memory, by a system call
// that the sanitizer does not see. There a thread that is late writes where another one
// has written before, and nobody reads it.
extern "C" const char* __tsan_default_suppressions() {
  return "race:FillRecord\nrace:AttachThread\nrace:ClaimSlot\n";
}

namespace heapprofd {
namespace {

constexpr uint64_t kRingSize = 1 << 20;

void WakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <typename T>
T* MapShared(int fd, size_t size) {
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return address == MAP_FAILED ? nullptr : static_cast<T*>(address);
}

// In the directory that the test's environment names.
class Service {
 public:
  Service() : directory_(getenv(kDirectoryVariable)) {
    const std::string wake = directory_ + kWakeName;
    chmod(wake.c_str(), 0600);  // the client has made it, as this process began
    const int fd = open(wake.c_str(), O_RDWR | O_CLOEXEC);
    wake_ = MapShared<WakePage>(fd, kWakePageSize);
    close(fd);
    const std::string path = directory_ + kSocketName;
    unlink(path.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    server_ = std::thread([this] { Serve(); });
  }

  ~Service() {
    shutdown(listener_, SHUT_RDWR);
    server_.join();
    close(listener_);
    unlink((directory_ + kSocketName).c_str());
  }

  void Begin() {
    is_wanted_.store(true);
    wake_->recordings.store(1);
    wake_->generation.fetch_add(1);
    WakeAll(wake_->generation);
  }

  void End() {
    EngineBlock* engine = engine_;
    engine->control.active.store(0);
    WakeAll(engine->control.active);
    wake_->recordings.store(0);
  }

  // Bytes that the client has written in the session.
  uint64_t Written() { return client_.load()->ring.write_position.load(); }

 private:
  void Serve() {
    for (int fd = accept(listener_, nullptr, nullptr); fd >= 0;
         fd = accept(listener_, nullptr, nullptr)) {
      Hello hello{};
      const bool is_asked = recv(fd, &hello, sizeof(hello), MSG_WAITALL) ==
                            static_cast<ssize_t>(sizeof(hello));
      // Who saw the count change before the generation asks once more, and has it
      // already.
      if (is_asked && is_wanted_.exchange(false))
        Answer(fd);
      close(fd);
    }
  }

  void Answer(int connection) {
    const std::array<int, 2> fds{memfd_create("engine", MFD_CLOEXEC),
                                 memfd_create("client", MFD_CLOEXEC)};
    EXPECT_EQ(ftruncate(fds[0], sizeof(EngineBlock)), 0);
    EXPECT_EQ(ftruncate(fds[1], static_cast<off_t>(kRingOffset + kRingSize)), 0);
    auto* engine = MapShared<EngineBlock>(fds[0], sizeof(EngineBlock));
    client_ = MapShared<ClientBlock>(fds[1], sizeof(ClientBlock));
    engine->heap_rules.other_interval = 100;
    engine->control.interval.store(100);
    engine->control.max_stack_copy.store(1024);
    engine->control.heartbeat.store(++beats_);
    engine->control.active.store(1);
    engine_ = engine;
    EXPECT_TRUE(SendWelcome(connection,
                            {.magic = kHandshakeMagic,
                             .version = kWireVersion,
                             .status = WelcomeStatus::kProfile,
                             .ring_size = kRingSize,
                             .seed = 1},
                            fds));
    close(fds[0]);
    close(fds[1]);
  }

  std::string directory_;
  int listener_ = -1;
  WakePage* wake_ = nullptr;
  uint64_t beats_ = 0;
  std::atomic<bool> is_wanted_{};
  std::atomic<EngineBlock*> engine_{};
  std::atomic<ClientBlock*> client_{};
  std::thread server_;
};

struct ToldHeap {
  uint32_t id = 0;
  std::atomic<int> enabled{};
  std::atomic<int> disabled{};
};

void OnEnabled(void* data, const AHeapProfileEnableCallbackInfo* info) {
  EXPECT_EQ(AHeapProfileEnableCallbackInfo_getSamplingInterval(info), 100u);
  static_cast<ToldHeap*>(data)->enabled.fetch_add(1);
}

void OnDisabled(void* data, const AHeapProfileDisableCallbackInfo* /*info*/) {
  static_cast<ToldHeap*>(data)->disabled.fetch_add(1);
}

void Register(ToldHeap& heap, const std::string& name) {
  AHeapInfo* info = AHeapInfo_create(name.c_str());
  AHeapInfo_setEnabledCallback(info, OnEnabled, &heap);
  AHeapInfo_setDisabledCallback(info, OnDisabled, &heap);
  heap.id = AHeapProfile_registerHeap(info);
}

template <typename F>
bool Eventually(F condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    std::this_thread::yield();
  }
  return true;
}

// Everything that a program can do with a heap, unknown ones included.
void UseHeap(uint32_t heap, uint64_t number) {
  heapprofd_label_push("thread", std::to_string(number >> 32).c_str());
  const uint32_t scope = heapprofd_nested_begin(heap);
  AHeapProfile_reportAllocation(heap, number, number % 300);
  heapprofd_nested_end(scope);
  AHeapProfile_reportSample(heap + 1, number, 10);
  AHeapProfile_reportAllocation(1000, number, 10);
  AHeapProfile_reportFree(heap, number);
  heapprofd_label_pop();
  if (number % 64 == 0) {
    heapprofd_mark("mark");
    heapprofd_dump_now();
  }
}

TEST(HeapProfileThreads, SessionsComeAndGoWhileEverybodyReports) {
  constexpr int kSessions = 20;
  constexpr int kThreads = 4;
  Service service;
  ToldHeap first;
  Register(first, "first");
  std::atomic<bool> is_over{};
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= kThreads; ++i) {
    threads.emplace_back([&is_over, i] {
      for (uint64_t n = 0; !is_over; ++n)
        UseHeap(static_cast<uint32_t>(n % 100), i << 32 | n % 1000);
    });
  }
  std::vector<ToldHeap> others(100);
  threads.emplace_back([&others, &is_over] {
    for (size_t i = 0; i < others.size() && !is_over; ++i)
      Register(others[i], "other." + std::to_string(i % 50));
  });
  for (int session = 1; session <= kSessions; ++session) {
    service.Begin();
    ASSERT_TRUE(Eventually([&] { return first.enabled == session; }));
    ASSERT_TRUE(Eventually([&] { return service.Written() > 0; }));
    service.End();
    ASSERT_TRUE(Eventually([&] { return first.disabled == session; }));
  }
  is_over = true;
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(first.enabled, kSessions);
  EXPECT_EQ(first.disabled, kSessions);
  // They are told after the first one.
  for (const ToldHeap& heap : others)
    EXPECT_TRUE(Eventually([&] { return heap.enabled == heap.disabled; }));
}

}  // namespace
}  // namespace heapprofd
