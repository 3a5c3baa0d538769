// A program under the preload library, with the test for an engine: how the two meet, and
// what comes through the ring. CMake says which program (hpd_preload_session_test).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/test_welcome.h"
#include "walk/rule_writer.h"
#include "wire/handshake.h"
#include "wire/records.h"
#include "wire/ring_reader.h"
#include "wire/shared_memory.h"

namespace heapprofd {

inline constexpr uint64_t kTestBlockSize = 12345;  // what the programs allocate
inline constexpr uint64_t kTestRingSize = uint64_t{1} << 20;
inline constexpr int kTestPatienceMs = 60'000;

inline void* MapAt(void* address, uint64_t size, int fd, uint64_t offset) {
  return mmap(address, size, PROT_READ | PROT_WRITE,
              MAP_SHARED | (address != nullptr ? MAP_FIXED : 0), fd,
              static_cast<off_t>(offset));
}

// As walk/step.h wants it, in what a record has copied of a stack.
struct CopiedTestStack {
  uint64_t start;
  std::span<const std::byte> bytes;

  bool Read(uint64_t address, uint64_t* value) const {
    if (address < start || address - start > bytes.size() - 8)
      return false;
    memcpy(value, bytes.data() + (address - start), sizeof(*value));
    return true;
  }
};

struct TestSample {
  SampleRecord record{};
  std::vector<uint64_t> keys;
  StackCopyHeader from{};
  std::vector<std::byte> copy;
};

class PreloadSession : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "preload-session-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path_.size(), sizeof(address.sun_path));
    path_.copy(address.sun_path, path_.size());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
    MakeMemory();
    Start();
    Meet();
  }

  void TearDown() override {
    if (engine_ != nullptr)
      engine_->control.active = 0;  // it need not wait for us as it ends
    else if (pid_ > 0)
      kill(pid_, SIGKILL);
    if (input_ != nullptr)
      fclose(input_);
    if (output_ != nullptr)
      fclose(output_);
    if (pid_ > 0)
      waitpid(pid_, nullptr, 0);
    unlink(path_.c_str());
  }

  void MakeMemory() {
    for (int& fd : files_)
      fd = memfd_create("preload-session", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(files_[0], sizeof(EngineBlock)), 0);
    ASSERT_EQ(ftruncate(files_[1], kRingOffset + kTestRingSize), 0);
    engine_ =
        static_cast<EngineBlock*>(MapAt(nullptr, sizeof(EngineBlock), files_[0], 0));
    rules_.emplace(&engine_->rules);
    engine_->control.active = 1;
    engine_->control.interval = 1;  // every allocation
    engine_->control.max_stack_copy = uint32_t{64} << 10;
    engine_->control.heartbeat = 1;
    auto* base =
        static_cast<std::byte*>(mmap(nullptr, kRingOffset + 2 * kTestRingSize, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::byte* const ring = base + kRingOffset;
    ASSERT_EQ(MapAt(base, kRingOffset + kTestRingSize, files_[1], 0), base);
    ASSERT_EQ(MapAt(ring + kTestRingSize, kTestRingSize, files_[1], kRingOffset),
              ring + kTestRingSize);
    client_ = reinterpret_cast<ClientBlock*>(base);
    reader_.emplace(&client_->ring, ring, kTestRingSize);
  }

  // Under an emulator, if there is one: it takes the variable for the program alone.
  void Start() {
    const std::string preload = std::string("LD_PRELOAD=") + HPD_TEST_PRELOAD;
    const std::string session = std::string(kSessionVariable) + "=" + path_;
    std::vector<const char*> words = {HPD_TEST_EMULATOR HPD_TEST_PROGRAM};
    std::vector<const char*> environment = {session.c_str()};
    if (words.size() > 1)
      words.insert(words.end() - 1, {"-E", preload.c_str()});
    else
      environment.push_back(preload.c_str());
    words.push_back(nullptr);
    environment.push_back(nullptr);
    int in[2];
    int out[2];
    ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execvpe(words[0], const_cast<char**>(words.data()),
              const_cast<char**>(environment.data()));
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = fdopen(in[1], "w");
    output_ = fdopen(out[0], "r");
  }

  void Meet() {
    pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&waiting, 1, kTestPatienceMs), 1) << "the program has not reported";
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    Hello hello{};
    ASSERT_EQ(recv(fd, &hello, sizeof(hello), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(hello)));
    EXPECT_EQ(hello.magic, kHandshakeMagic);
    EXPECT_EQ(hello.version, kWireVersion);
    EXPECT_EQ(hello.origin, ClientOrigin::kStartup);
    ASSERT_TRUE(SendWelcome(fd,
                            {.magic = kHandshakeMagic,
                             .version = kWireVersion,
                             .status = WelcomeStatus::kProfile,
                             .ring_size = kTestRingSize,
                             .seed = 1},
                            files_));
    close(fd);
  }

  // Has the program allocate; it answers in `output_`.
  void Tell(const char* command = "go\n") {
    fputs(command, input_);
    fflush(input_);
  }

  // The record of the program's block; passes over all that was in the ring before it.
  std::optional<TestSample> TakeSample(uint64_t block) {
    RingReader::Record record;
    while (reader_->Read(&record, /*writers_gone=*/false) ==
           RingReader::Outcome::kRecord) {
      SampleRecord sample{};
      if (record.type != RecordType::kSample)
        continue;
      memcpy(&sample, record.payload.data(), sizeof(sample));
      if (sample.size == kTestBlockSize && sample.address == block)
        return Parse(sample, record.payload.subspan(sizeof(sample)));
    }
    return std::nullopt;
  }

  static TestSample Parse(const SampleRecord& record, std::span<const std::byte> rest) {
    TestSample sample;
    sample.record = record;
    sample.keys.resize(record.frame_count);
    if (!sample.keys.empty())
      memcpy(sample.keys.data(), rest.data(), sample.keys.size() * 8);
    rest = rest.subspan(sample.keys.size() * 8);
    if ((record.flags & kSampleHasStackCopy) != 0) {
      memcpy(&sample.from, rest.data(), sizeof(sample.from));
      rest = rest.subspan(sizeof(sample.from));
      sample.copy.assign(rest.begin(), rest.end());
    }
    return sample;
  }

  std::string path_;
  int listener_ = -1;
  std::array<int, 2> files_{};
  EngineBlock* engine_ = nullptr;
  std::optional<RuleWriter> rules_;
  ClientBlock* client_ = nullptr;
  std::optional<RingReader> reader_;
  pid_t pid_ = 0;
  FILE* input_ = nullptr;
  FILE* output_ = nullptr;
};

}  // namespace heapprofd
