// The service's rules with real sockets; real programs are in tests/e2e/service_test.py.
#include "service/service.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/files/passed_fds.h"
#include "base/scoped_fd.h"
#include "control.pb.h"

namespace heapprofd {
namespace {

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hpdXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
    Start();
  }

  void TearDown() override {
    service_.reset();
    directory_.reset();
    std::filesystem::remove_all(place_);
  }

  void Start() {
    Result<std::unique_ptr<RuntimeDirectory>> directory = RuntimeDirectory::Open(place_);
    ASSERT_TRUE(directory.ok()) << directory.status().message();
    ServiceHooks hooks{
        .finish =
            [this](TraceRecording& recording, const FinishRequest& request) {
              Tell(request.environment);
              return RecordingOutcome{.exit_code = 3,
                                      .has_whole_trace = recording.WriteRest({}).ok()};
            },
        .observe = [](TraceRecording&) { return std::string(); },
        .forget = [this](TraceRecording&) { ++forgotten_; }};
    directory_ = std::move(directory).value();
    Result<std::unique_ptr<Door>> door = Door::Open(directory_.get(), ScopedFd());
    ASSERT_TRUE(door.ok()) << door.status().message();
    service_ =
        std::make_unique<Service>(std::move(door).value(), place_, std::move(hooks));
  }

  // Of the process that finishes, which is another one.
  void Tell(const std::vector<std::string>& environment) const {
    std::ofstream file(place_ + "/environment");
    for (const std::string& entry : environment)
      file << entry << '\n';
  }

  ControlChannel Connect() {
    Result<ControlChannel> channel = ControlChannel::Connect(place_ + kSocketName);
    EXPECT_TRUE(channel.ok());
    return std::move(channel).value();
  }

  // To somebody who is ready for descriptors.
  ControlChannel ConnectAndPrepare() {
    ControlChannel channel = Connect();
    EXPECT_TRUE(channel.Send(ControlType::kPrepare, "").ok());
    EXPECT_EQ(AnswerOn(channel).type, ControlType::kReady);
    return channel;
  }

  ControlMessage AnswerOn(ControlChannel& channel) {
    for (int i = 0; i < 2000; ++i) {
      service_->Poll(5, -1);
      Result<std::optional<ControlMessage>> message = channel.Receive();
      if (!message.ok())
        break;
      if (message.value() && message.value()->type != ControlType::kNote)
        return std::move(*message.value());
    }
    ADD_FAILURE() << "no answer";
    return {};
  }

  // The process that finishes a recording ends after its last word.
  bool BecomesIdle() {
    for (int i = 0; i < 2000 && !service_->is_idle(); ++i)
      service_->Poll(5, -1);
    return service_->is_idle();
  }

  static std::string Request(const std::string& unique_name, bool wants_dumps = false) {
    RecordingConfig config;
    config.sessions.emplace_back();
    config.sessions[0].targets.names = {"nobody-has-this-name"};
    // While somebody waits for programs to start all of the machine's wait for their
    // leave.
    config.sessions[0].targets.no_startup = true;
    config.unique_name = unique_name;
    protos::StartRequest request;
    request.set_trace_config(SerializeTraceConfig(config));
    request.set_wants_dumps(wants_dumps);
    return request.SerializeAsString();
  }

  ControlMessage StartOn(ControlChannel& channel, const std::string& unique_name) {
    EXPECT_TRUE(channel.Send(ControlType::kPrepare, "").ok());
    EXPECT_EQ(AnswerOn(channel).type, ControlType::kReady);
    const std::string path = place_ + "/trace" + std::to_string(++traces_);
    const ScopedFd trace(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_TRUE(
        channel
            .Send(ControlType::kStart, Request(unique_name), {trace.get(), STDERR_FILENO})
            .ok());
    return AnswerOn(channel);
  }

  std::string place_;
  std::unique_ptr<RuntimeDirectory> directory_;
  std::unique_ptr<Service> service_;
  int forgotten_ = 0;
  int traces_ = 0;
};

TEST_F(ServiceTest, ARecordingBeginsIsMarkedAndIsFinishedInAProcessOfItsOwn) {
  ControlChannel channel = Connect();
  EXPECT_EQ(StartOn(channel, "").type, ControlType::kStarted);
  EXPECT_FALSE(service_->is_idle());
  ASSERT_TRUE(channel.Send(ControlType::kMark, "half").ok());
  const ControlMessage marked = AnswerOn(channel);
  EXPECT_EQ(marked.type, ControlType::kMarked);
  EXPECT_EQ(marked.payload, "1");
  ASSERT_TRUE(channel.Send(ControlType::kStop, "").ok());
  const ControlMessage done = AnswerOn(channel);
  EXPECT_EQ(done.type, ControlType::kDone);
  EXPECT_EQ(done.payload, "3 whole");
  EXPECT_EQ(forgotten_, 1);
  EXPECT_TRUE(BecomesIdle());
}

TEST_F(ServiceTest, WhoWantsToKnowOfDumpsIsToldHowManyThereWere) {
  ControlChannel channel = ConnectAndPrepare();
  const std::string path = place_ + "/trace";
  const ScopedFd trace(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(channel
                  .Send(ControlType::kStart, Request("", /*wants_dumps=*/true),
                        {trace.get(), STDERR_FILENO})
                  .ok());
  EXPECT_EQ(AnswerOn(channel).type, ControlType::kStarted);
  for (const char* count : {"1", "2"}) {
    ASSERT_TRUE(channel.Send(ControlType::kMark, "").ok());
    EXPECT_EQ(AnswerOn(channel).type, ControlType::kMarked);
    const ControlMessage dumped = AnswerOn(channel);
    EXPECT_EQ(dumped.type, ControlType::kDumped);
    EXPECT_EQ(dumped.payload, count);
  }
}

TEST_F(ServiceTest, OfACallersVariablesNoneSteersTheLibrariesOfTheFinisher) {
  protos::StartRequest request;
  ASSERT_TRUE(request.ParseFromString(Request("")));
  for (const char* entry : {"LD_PRELOAD=/tmp/evil.so", "PATH=/bin", "LD_AUDIT=a",
                            "GCONV_PATH=/tmp", "=", "OPENSSL_CONF=a", "", "HOME",
                            "PATHS=a", "GLIBC_TUNABLES=a", "NO_COLOR=", "MALLOC_CHECK_=3",
                            "SQLITE_TMPDIR=a", "CURL_HOME=a", "LOCPATH=a", "path=a"})
    request.add_environment(entry);
  ControlChannel channel = ConnectAndPrepare();
  const std::string path = place_ + "/trace";
  const ScopedFd trace(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(channel
                  .Send(ControlType::kStart, request.SerializeAsString(),
                        {trace.get(), STDERR_FILENO})
                  .ok());
  EXPECT_EQ(AnswerOn(channel).type, ControlType::kStarted);
  ASSERT_TRUE(channel.Send(ControlType::kStop, "").ok());
  EXPECT_EQ(AnswerOn(channel).type, ControlType::kDone);
  std::stringstream told;
  told << std::ifstream(place_ + "/environment").rdbuf();
  EXPECT_EQ(told.str(), "PATH=/bin\nHOME\nNO_COLOR=\n");
}

TEST_F(ServiceTest, ARecordingThatEndsAtOnceHasBegunBefore) {
  ControlChannel channel = ConnectAndPrepare();
  const std::string path = place_ + "/trace";
  const ScopedFd trace(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(
      channel.Send(ControlType::kStart, Request(""), {trace.get(), STDERR_FILENO}).ok());
  ASSERT_TRUE(channel.Send(ControlType::kStop, "").ok());
  EXPECT_EQ(AnswerOn(channel).type, ControlType::kStarted);
  EXPECT_EQ(AnswerOn(channel).type, ControlType::kDone);
}

TEST_F(ServiceTest, ARecordingEndsWithItsConnection) {
  {
    ControlChannel channel = Connect();
    StartOn(channel, "");
  }
  for (int i = 0; i < 2000 && forgotten_ == 0; ++i)
    service_->Poll(5, -1);
  EXPECT_EQ(forgotten_, 1);
}

TEST_F(ServiceTest, MessagesThatComeTogetherAreAllAnswered) {
  constexpr int kMarks = 20;
  ControlChannel channel = Connect();
  EXPECT_EQ(StartOn(channel, "").type, ControlType::kStarted);
  for (int i = 0; i < kMarks; ++i)
    ASSERT_TRUE(channel.Send(ControlType::kMark, std::to_string(i)).ok());
  for (int i = 0; i < kMarks; ++i)
    EXPECT_EQ(AnswerOn(channel).type, ControlType::kMarked);
}

TEST_F(ServiceTest, WhoeverSaysHalfAWordIsSentAway) {
  const std::string path = place_ + kSocketName;
  const ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(send(fd.get(), "hea", 3, 0), 3);
  char byte = 0;
  ssize_t got = -1;
  for (int i = 0; i < 2000 && got < 0; ++i) {
    service_->Poll(5, -1);
    got = recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    if (got < 0 && errno == ECONNRESET)
      got = 0;
  }
  EXPECT_EQ(got, 0);
  EXPECT_TRUE(BecomesIdle());
}

TEST_F(ServiceTest, TheNumberOfRecordingsIsLimited) {
  std::vector<ControlChannel> channels;
  ControlMessage answer;
  answer.type = ControlType::kStarted;
  while (answer.type == ControlType::kStarted && channels.size() < 300) {
    channels.push_back(Connect());
    answer = StartOn(channels.back(), "");
  }
  EXPECT_EQ(channels.size(), geteuid() == 0 ? 257u : 65u);
  EXPECT_EQ(answer.type, ControlType::kUnavailable);
  EXPECT_NE(
      answer.payload.find(
          " recordings of this user run already, and 0 are being finished; stop one"),
      std::string::npos)
      << answer.payload;
}

TEST_F(ServiceTest, TheNextServiceCanStartWhileThisOneFinishes) {
  ControlChannel channel = Connect();
  EXPECT_EQ(StartOn(channel, "").type, ControlType::kStarted);
  service_->StopAll();
  EXPECT_FALSE(ControlChannel::Connect(place_ + kSocketName).ok());
  const std::unique_ptr<RuntimeDirectory> earlier_directory = std::move(directory_);
  const std::unique_ptr<Service> earlier = std::move(service_);
  Start();
  EXPECT_EQ(StartOn(channel = Connect(), "").type, ControlType::kStarted);
}

TEST_F(ServiceTest, AUniqueNameIsGivenOnce) {
  ControlChannel first = Connect();
  EXPECT_EQ(StartOn(first, "mine").type, ControlType::kStarted);
  ControlChannel second = Connect();
  const ControlMessage refused = StartOn(second, "mine");
  EXPECT_EQ(refused.type, ControlType::kFailed);
  EXPECT_EQ(refused.payload,
            "cannot record: a recording with the unique_session_name mine runs already; "
            "stop it");
}

TEST_F(ServiceTest, ATraceThatCouldMakeTheServiceWaitIsRefused) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const ScopedFd read_end(fds[0]);
  const ScopedFd write_end(fds[1]);
  ControlChannel channel = ConnectAndPrepare();
  ASSERT_TRUE(channel.Send(ControlType::kStart, Request(""), {write_end.get(), 2}).ok());
  const ControlMessage refused = AnswerOn(channel);
  EXPECT_EQ(refused.type, ControlType::kFailed);
  EXPECT_EQ(refused.payload, "cannot record: the trace must go to a regular file");
}

TEST_F(ServiceTest, ARequestWithoutDescriptorsOrWithNonsenseIsRefused) {
  ControlChannel without = Connect();
  ASSERT_TRUE(without.Send(ControlType::kStart, Request("")).ok());
  EXPECT_EQ(AnswerOn(without).type, ControlType::kFailed);
  ControlChannel nonsense = ConnectAndPrepare();
  const ScopedFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(
      nonsense.Send(ControlType::kStart, "\xff\xff", {null.get(), null.get()}).ok());
  EXPECT_EQ(AnswerOn(nonsense).type, ControlType::kFailed);
}

TEST_F(ServiceTest, ResultsGoToADirectoryThatComesOpen) {
  protos::StartRequest request;
  ASSERT_TRUE(request.ParseFromString(Request("")));
  request.set_directory("/wherever");
  const ScopedFd trace(
      open((place_ + "/trace").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const ScopedFd place(open(place_.c_str(), O_PATH | O_CLOEXEC));
  const auto answer_to = [&](const std::vector<int>& fds) {
    ControlChannel channel = ConnectAndPrepare();
    EXPECT_TRUE(channel.Send(ControlType::kStart, request.SerializeAsString(), fds).ok());
    return AnswerOn(channel);
  };
  EXPECT_TRUE(answer_to({trace.get(), 2})
                  .payload.starts_with("cannot record: the request has no descriptors or "
                                       "is not one of this service's "
                                       "version"));
  EXPECT_EQ(answer_to({trace.get(), 2, trace.get()}).payload,
            "cannot record: what comes for the results is no directory");
  EXPECT_EQ(answer_to({trace.get(), 2, place.get()}).type, ControlType::kStarted);
}

TEST_F(ServiceTest, DescriptorsAreRefusedUntilTheServiceIsReady) {
  ControlChannel channel = Connect();
  if (!RefuseFds(channel.fd()))
    GTEST_SKIP() << "this kernel cannot refuse descriptors";
  EXPECT_FALSE(channel.Send(ControlType::kStart, Request(""), {2, 2}).ok());
  ASSERT_TRUE(channel.Send(ControlType::kPrepare, "").ok());
  EXPECT_EQ(AnswerOn(channel).type, ControlType::kReady);
  EXPECT_TRUE(channel.Send(ControlType::kStart, Request(""), {2, 2}).ok());
}

TEST_F(ServiceTest, ACommandThatSaysNoMoreIsSentAway) {
  ControlChannel recording = Connect();
  EXPECT_EQ(StartOn(recording, "").type, ControlType::kStarted);
  service_->set_command_patience(20'000'000);
  ControlChannel undecided = ConnectAndPrepare();
  ControlChannel halved = Connect();
  const uint64_t word = kControlMagic;
  ASSERT_EQ(send(halved.fd(), &word, sizeof(word), 0),
            static_cast<ssize_t>(sizeof(word)));
  for (ControlChannel* channel : {&undecided, &halved}) {
    bool is_open = true;
    for (const uint64_t end_ns = MonotonicNs() + 60'000'000'000;
         is_open && MonotonicNs() < end_ns;) {
      service_->Poll(-1, -1);
      is_open = channel->Receive().ok();
    }
    EXPECT_FALSE(is_open);
  }
  ASSERT_TRUE(recording.Send(ControlType::kMark, "later").ok());
  EXPECT_EQ(AnswerOn(recording).type, ControlType::kMarked);
}

TEST_F(ServiceTest, TheNumberOfCommandsIsLimitedAndTheLastIsToldWhy) {
  service_->set_command_patience(3'600'000'000'000);  // however slow this machine is
  const size_t limit = geteuid() == 0 ? 512 : 128;
  std::vector<ControlChannel> channels;
  while (channels.size() < limit)
    channels.push_back(ConnectAndPrepare());
  ControlChannel one_more = Connect();
  ASSERT_TRUE(one_more.Send(ControlType::kPrepare, "").ok());
  const ControlMessage refused = AnswerOn(one_more);
  EXPECT_EQ(refused.type, ControlType::kUnavailable);
  EXPECT_EQ(refused.payload, "cannot serve one more command: " + std::to_string(limit) +
                                 " of this user are connected already; stop one");
}

TEST_F(ServiceTest, TheSocketAndTheLockAreGoneWithTheService) {
  EXPECT_FALSE(RuntimeDirectory::Open(place_).ok());
  service_.reset();
  directory_.reset();
  EXPECT_FALSE(std::filesystem::exists(place_ + kSocketName));
  EXPECT_TRUE(std::filesystem::exists(place_ + kWakeName));
  Start();
}

TEST_F(ServiceTest, EverySessionAndEveryServiceTurnsTheWakePage) {
  const auto generation = [this] {
    const ScopedFd fd(open((place_ + kWakeName).c_str(), O_RDONLY | O_CLOEXEC));
    uint32_t value = 0;
    EXPECT_EQ(pread(fd.get(), &value, sizeof(value), 0), 4);
    return value;
  };
  const uint32_t before = generation();
  ControlChannel channel = Connect();
  StartOn(channel, "");
  EXPECT_EQ(generation(), before + 1);

  struct stat status {};

  ASSERT_EQ(stat((place_ + kWakeName).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0444u);
}

TEST(RuntimeDirectoryTest, SomebodyElsesDirectoryIsRefused) {
  if (geteuid() == 0)
    GTEST_SKIP() << "everything is root's";
  EXPECT_EQ(RuntimeDirectory::Open("/").status().message(),
            "cannot use /: it is no directory of this user; remove it, or set "
            "HEAPPROFD_DIRECTORY");
}

// A directory of the test's, with what a service has in it.
class RuntimeDirectoryPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hpdXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
  }

  void TearDown() override { std::filesystem::remove_all(place_); }

  void Put(const std::string& name) const {
    const ScopedFd file(
        open((place_ + name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_TRUE(file.valid());
  }

  mode_t ModeOf(const std::string& name) const {
    struct stat status {};

    EXPECT_EQ(lstat((place_ + name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  static std::string MessageOf(const std::string& path) {
    return RuntimeDirectory::Open(path).status().message();
  }

  std::string place_;
};

TEST_F(RuntimeDirectoryPlaceTest, NoLinkInItIsFollowed) {
  Put("/victim");
  ASSERT_EQ(chmod((place_ + "/victim").c_str(), 0640), 0);
  ASSERT_EQ(mkdir((place_ + "/at").c_str(), 0700), 0);
  for (const char* name : {"/at/lock", "/at/wake"}) {
    ASSERT_EQ(symlink((place_ + "/victim").c_str(), (place_ + name).c_str()), 0);
    EXPECT_EQ(MessageOf(place_ + "/at"),
              "cannot use " + place_ + name +
                  ": it is no regular file of this user; remove it");
    EXPECT_EQ(unlink((place_ + name).c_str()), 0);
  }
  ASSERT_EQ(symlink((place_ + "/at").c_str(), (place_ + "/link").c_str()), 0);
  EXPECT_EQ(MessageOf(place_ + "/link"),
            "cannot use " + place_ +
                "/link: it is no directory of this user; remove it, or set "
                "HEAPPROFD_DIRECTORY");
  EXPECT_EQ(ModeOf("/victim"), 0640u);
}

TEST_F(RuntimeDirectoryPlaceTest, OneThatIsThereForSomethingElseIsLeftAsItIs) {
  Put("/mail");
  EXPECT_EQ(MessageOf(place_),
            "cannot use " + place_ +
                ": it has files already, such as mail; name a new or empty directory, "
                "by --directory or HEAPPROFD_DIRECTORY");
  EXPECT_EQ(ModeOf(""), 0700u);
  Put("/lock");  // one of an earlier service
  EXPECT_EQ(MessageOf(place_ + "/"), "");
}

TEST_F(RuntimeDirectoryPlaceTest, RootTakesNoneThatOthersCanAlter) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root";
  ASSERT_EQ(mkdir((place_ + "/theirs").c_str(), 0755), 0);
  ASSERT_EQ(chown((place_ + "/theirs").c_str(), 61001, 61001), 0);
  EXPECT_EQ(MessageOf(place_ + "/theirs/x"),
            "cannot use " + place_ + "/theirs/x: other users can alter " + place_ +
                "/theirs; name a place that root alone can alter");
  ASSERT_EQ(mkdir((place_ + "/open").c_str(), 0777), 0);
  ASSERT_EQ(chmod((place_ + "/open").c_str(), 0777), 0);
  Put("/open/wake");
  EXPECT_NE(MessageOf(place_ + "/open"), "");
  EXPECT_EQ(unlink((place_ + "/open/wake").c_str()), 0);
  EXPECT_EQ(MessageOf(place_ + "/open"), "");
  EXPECT_EQ(ModeOf("/open"), 0755u);
}

TEST(RuntimeDirectoryTest, AFileInThePlaceIsRefused) {
  const std::string path = testing::TempDir() + "/hpd_file";
  const ScopedFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(RuntimeDirectory::Open(path).status().message(),
            "cannot use " + path +
                ": it is no directory of this user; remove it, or set "
                "HEAPPROFD_DIRECTORY");
  unlink(path.c_str());
}

}  // namespace
}  // namespace heapprofd
