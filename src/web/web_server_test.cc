// Whose time a request has, and when nobody uses the server any more; what others try is
// in tests/e2e/view_test.py.
#include "web/web_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace heapprofd {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kServerPatience{2};

class Client {
 public:
  // `url`: of the page; asks for what is below it.
  Client(const std::string& url, const std::string& path) {
    const size_t port = url.find(':', sizeof("http:")) + 1;
    const size_t token = url.find('/', port);
    socket_.connect({asio::ip::address_v4::loopback(),
                     static_cast<uint16_t>(std::stoi(url.substr(port, token - port)))});
    const std::string request =
        "GET " + url.substr(token) + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    asio::write(socket_, asio::buffer(request));
  }

  // "HTTP/1.1 200 OK ..."
  std::string Answer() {
    std::string answer;
    boost::system::error_code end;
    asio::read(socket_, asio::dynamic_buffer(answer), end);
    return answer;
  }

 private:
  asio::io_context io_;
  tcp::socket socket_{io_};
};

class WebServerTest : public ::testing::Test {
 protected:
  void Serve(const WebLimits& limits) {
    std::promise<std::string> url;
    std::future<std::string> announced = url.get_future();
    end_ = std::async(std::launch::async, [this, limits, url = std::move(url)]() mutable {
      return ServeWeb(served_->site, limits,
                      [&](const std::string& at) { url.set_value(at); });
    });
    url_ = announced.get();
  }

  // Nothing is left running when a test has not come to its end.
  void TearDown() override {
    if (!end_.valid())
      return;
    served_->LetGo();
    EndBySignal();
  }

  WebEnd EndBySignal() {
    raise(SIGTERM);
    return End();
  }

  WebEnd End() {
    EXPECT_EQ(end_.wait_for(kServerPatience), std::future_status::ready);
    return end_.get().value();
  }

  struct Served {
    std::atomic<bool> cancel = false;
    std::promise<void> has_begun;         // the first one that takes time
    std::atomic<bool> may_end = false;    // what is stuck, whatever else it is told
    std::vector<Clock::time_point> ends;  // of what is slow: each when it is cancelled

    void LetGo() {
      may_end = true;
      may_end.notify_all();
    }

    void BeSlow() {
      if (ends.empty())
        has_begun.set_value();
      const auto deadline = Clock::now() + kServerPatience;
      while (!cancel && Clock::now() < deadline)
        std::this_thread::yield();
      ends.push_back(Clock::now());
    }

    WebSite site{.token = std::string(32, '0'),
                 .page = "page",
                 .answer =
                     [this](const WebRequest& request) {
                       if (request.path == "api/stuck") {
                         has_begun.set_value();
                         may_end.wait(false);
                       }
                       if (request.path == "api/slow")
                         BeSlow();
                       if (request.path == "api/cancelled") {
                         BeSlow();
                         return WebError(503, "it was cancelled", "");
                       }
                       return WebAnswer{.body = "done"};
                     },
                 .cancel = &cancel};
  };

  std::unique_ptr<Served> served_ = std::make_unique<Served>();
  std::future<Result<WebEnd>> end_;
  std::string url_;
};

TEST_F(WebServerTest, WhoHasWaitedHasAllOfItsTime) {
  constexpr milliseconds kWork(100);
  Serve({.work = kWork, .grace = kServerPatience});
  Client first(url_, "api/slow");
  served_->has_begun.get_future().wait();
  Client second(url_, "api/slow");
  EXPECT_NE(first.Answer().find(" 200 "), std::string::npos);
  EXPECT_NE(second.Answer().find(" 200 "), std::string::npos);
  EXPECT_EQ(EndBySignal(), WebEnd::kSignal);
  ASSERT_EQ(served_->ends.size(), 2u);
  EXPECT_GE(served_->ends[1] - served_->ends[0], kWork);
}

TEST_F(WebServerTest, WhatHasTakenTooLongIsNotCalledCancelled) {
  Serve({.work = milliseconds(50), .grace = kServerPatience});
  const std::string answer = Client(url_, "api/cancelled").Answer();
  EXPECT_NE(answer.find(" 503 "), std::string::npos);
  EXPECT_NE(answer.find("took longer than 50 ms and was given up"), std::string::npos)
      << answer;
  EXPECT_EQ(EndBySignal(), WebEnd::kSignal);
}

TEST_F(WebServerTest, WhoWaitsForWhatIsStuckIsToldSo) {
  // However many might wait: only what does is waited for.
  Serve({.work = milliseconds(50), .grace = milliseconds(50), .waiting = 1'000'000});
  Client first(url_, "api/stuck");
  served_->has_begun.get_future().wait();
  Client second(url_, "api/quick");
  EXPECT_NE(second.Answer().find("take too long"), std::string::npos);
  EXPECT_NE(first.Answer().find(" 504 "), std::string::npos);
  served_->LetGo();
  EXPECT_EQ(EndBySignal(), WebEnd::kSignal);
}

TEST_F(WebServerTest, WhatIsStuckDoesNotKeepItFromEnding) {
  Serve(
      {.idle = milliseconds(5000), .work = milliseconds(50), .grace = milliseconds(50)});
  EXPECT_NE(Client(url_, "api/stuck").Answer().find(" 504 "), std::string::npos);
  EXPECT_EQ(End(), WebEnd::kStillBusy);
  (void)served_.release();  // its thread is there as long as this process
}

}  // namespace
}  // namespace heapprofd
