// This process is its own virtual machine here: it listens, or somebody else does.
#include "hotspot/attach_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/test_limits.h"
#include "hotspot/attach_answer.h"
#include "hotspot/machine_errand.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongNs = 60'000'000'000;

class AttachSocketTest : public testing::Test {
 protected:
  AttachSocketTest() {
    std::string name = fs::temp_directory_path() / "attach_XXXXXX";
    root_ = mkdtemp(name.data());
    temporary_ = ScopedFd(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    process_.pid = process_.inner_pid = getpid();
    process_.user = geteuid();
    process_.handle = ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    signal(SIGQUIT, [](int) {});
  }

  ~AttachSocketTest() override {
    signal(SIGQUIT, SIG_DFL);
    fs::remove_all(root_);
  }

  std::string Place(const std::string& name) const {
    return root_ + "/." + name + "_pid" + std::to_string(getpid());
  }

  static std::array<int, 2> Pair(int type) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
    return ends;
  }

  ScopedFd Listener(int backlog) {
    ScopedFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Place("java").copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(
        bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener.get(), backlog), 0);
    return listener;
  }

  Result<ScopedFd> Connect(uint64_t patience_ns) {
    const MachinePatience patience{.until_it_listens_ns = patience_ns,
                                   .advice = "have patience"};
    return ConnectTo({process_, ScopedFd(dup(temporary_.get())), sender_, patience});
  }

  // What is made of it when the machine writes `bytes` and ends.
  Result<std::string> Answer(const std::string& bytes) {
    int size = 1 << 20;
    EXPECT_EQ(setsockopt(machine_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    EXPECT_EQ(write(machine_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    machine_.reset();
    return ReceiveAnswer(ours_.get(), sender_);
  }

  std::string root_;
  ScopedFd temporary_;
  JavaProcess process_;
  const std::array<int, 2> senders_ = Pair(SOCK_SEQPACKET);
  const std::array<int, 2> machines_ = Pair(SOCK_STREAM);
  Sender sender_{ScopedFd(senders_[0])};
  ScopedFd waits_{senders_[1]};  // for the sender's result
  ScopedFd ours_{machines_[0]};
  ScopedFd machine_{machines_[1]};
};

TEST_F(AttachSocketTest, OneThatListensIsConnectedTo) {
  const ScopedFd listener = Listener(5);
  const Result<ScopedFd> socket = Connect(kLongNs);
  EXPECT_TRUE(socket.ok()) << socket.status().message();
}

TEST_F(AttachSocketTest, HowLongItMayTakeToListenIsTheCallers) {
  const Result<ScopedFd> socket = Connect(1'000'000);
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.status().message().find("has not begun to listen within 1 ms"),
            std::string::npos)
      << socket.status().message();
  EXPECT_TRUE(socket.status().message().ends_with("and if not, have patience"))
      << socket.status().message();
  EXPECT_FALSE(fs::exists(Place("attach")));
}

// An option that not every command has is advised by those that have it.
TEST(MachineErrandTest, WhatToDoWhenPatienceEndsIsTheCallers) {
  EXPECT_EQ(CauseOf(Status(StatusCode::kTryAgain, "dumping"),
                    {.without_progress_ns = 1'000'000'000, .advice = "have patience"}),
            "nothing has come for 1.0 s (dumping); look what it does, or have patience");
  EXPECT_EQ(CauseOf(Status(StatusCode::kIo, "it is gone"), {.advice = "have patience"}),
            "it is gone");
}

TEST_F(AttachSocketTest, OneWithALongQueueDoesListen) {
  const ScopedFd listener = Listener(0);
  std::array<ScopedFd, 2> waiting;
  Result<ScopedFd> socket = Connect(kLongNs);
  for (size_t i = 0; i < 2 && socket.ok(); ++i) {
    waiting.at(i) = std::move(socket.value());
    socket = Connect(1'000'000);
  }
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.status().code(), StatusCode::kUnavailable);  // not the messenger's
  EXPECT_NE(socket.status().message().find("so many others have waited"),
            std::string::npos)
      << socket.status().message();
}

TEST_F(AttachSocketTest, AFileOrALinkInItsPlaceIsRefused) {
  std::ofstream(Place("java")) << "";
  EXPECT_NE(Connect(kLongNs).status().message().find("is no socket"), std::string::npos);
  fs::remove(Place("java"));
  fs::create_symlink("/run/somewhere", Place("java"));
  EXPECT_NE(Connect(kLongNs).status().message().find("is no socket"), std::string::npos);
}

// Nothing waits longer than the sender, who is gone.
TEST_F(AttachSocketTest, OneThatDoesNotAnswerIsLeftWithTheSender) {
  waits_.reset();
  EXPECT_EQ(ReceiveAnswer(ours_.get(), sender_).status().message(),
            "nobody waits for it");
}

TEST_F(AttachSocketTest, WhatTheSystemRefusesIsTold) {
  EXPECT_EQ(OpenTemporary(process_).status().message(),  // it has no root directory here
            "its /tmp cannot be reached: Bad file descriptor");
  {
    const ScopedFd listener = Listener(5);
    if (!kMayRunOutOfDescriptors)
      GTEST_SKIP() << "sanitizers need descriptors of their own";
    const ScopedLimit none(RLIMIT_NOFILE, 0);
    EXPECT_EQ(Connect(kLongNs).status().message(),
              "its socket cannot be reached: Too many open files; raise ulimit -n");
  }
  process_.handle.reset();
  fs::remove(Place("java"));
  EXPECT_EQ(Connect(kLongNs).status().message(),
            "it cannot be sent SIGQUIT: Bad file descriptor");
}

TEST_F(AttachSocketTest, AnAnswerIsANumberAndText) {
  const Result<std::string> answer = Answer("0\nsome\ntext\n\n");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value(), "some\ntext");
}

TEST_F(AttachSocketTest, ANumberOtherThanZeroIsAnError) {
  EXPECT_EQ(Answer("101\nno such thing\n").status().message(),
            "it answers 101, \"no such thing\"");
}

TEST_F(AttachSocketTest, AnAnswerWithoutALineIsNone) {
  EXPECT_EQ(Answer(std::string(size_t{20} << 10, '0')).status().message(),
            "it closed the connection without an answer");
}

TEST_F(AttachSocketTest, NoMoreThan16KibAreTaken) {
  const Result<std::string> answer = Answer("0\n" + std::string(size_t{100} << 10, 'x'));
  ASSERT_TRUE(answer.ok());
  EXPECT_LE(answer.value().size(), size_t{20} << 10);
}

}  // namespace
}  // namespace heapprofd
