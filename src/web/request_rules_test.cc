#include "web/request_rules.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr char kToken[] = "0123456789abcdef";
constexpr char kHost[] = "127.0.0.1:4711";

// 200, or the status of the refusal.
unsigned StatusOf(const RequestHead& head) {
  const auto admitted = Admit(head, kToken);
  const auto* const refusal = std::get_if<Refusal>(&admitted);
  return refusal == nullptr ? 200 : refusal->status;
}

unsigned StatusOfTarget(const std::string& target) {
  return StatusOf({.method = "GET", .target = target, .host = kHost, .origin = ""});
}

unsigned StatusOfHost(const std::string& host, const std::string& origin = "") {
  return StatusOf(
      {.method = "GET", .target = "/0123456789abcdef/", .host = host, .origin = origin});
}

WebRequest Admitted(const std::string& target) {
  const std::string whole = std::string("/") + kToken + "/" + target;
  return std::get<WebRequest>(
      Admit({.method = "GET", .target = whole, .host = kHost, .origin = ""}, kToken));
}

TEST(RequestRulesTest, WhoKnowsTheTokenMayAsk) {
  EXPECT_EQ(StatusOfTarget("/0123456789abcdef/"), 200u);
  EXPECT_EQ(StatusOfTarget("/0123456789abcdef/api/sql"), 200u);
  for (const char* const wrong :
       {"", "/", "//", "/0123456789abcdef", "/0123456789abcdee/", "/0123456789abcde/",
        "/0123456789abcdeff/", "/0123456789ABCDEF/", "/%30123456789abcdef/",
        "/x/../0123456789abcdef/", "0123456789abcdef/", "*",
        "http://127.0.0.1:4711/0123456789abcdef/"})
    EXPECT_EQ(StatusOfTarget(wrong), 404u) << wrong;
}

TEST(RequestRulesTest, TheHostIsThisMachine) {
  for (const char* const ours :
       {"127.0.0.1", "127.0.0.1:4711", "localhost:80", "localhost"})
    EXPECT_EQ(StatusOfHost(ours), 200u) << ours;
  for (const char* const other :
       {"", "evil.example", "evil.example:4711", "127.0.0.1.evil.example",
        "localhost.evil", "127.0.0.1:", "127.0.0.1:4711x", "127.0.0.1:123456",
        "127.0.0.10", "0.0.0.0:4711", "127.0.0.1@evil.example", "user@127.0.0.1"})
    EXPECT_EQ(StatusOfHost(other), 403u) << other;
}

TEST(RequestRulesTest, ThereIsOneHost) {
  EXPECT_EQ(StatusOf({.method = "GET",
                      .target = "/0123456789abcdef/",
                      .host = kHost,
                      .hosts = 2,
                      .origin = ""}),
            400u);
}

TEST(RequestRulesTest, ThePageIsOurs) {
  EXPECT_EQ(StatusOfHost(kHost, "http://127.0.0.1:4711"), 200u);
  for (const char* const other :
       {"null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:4712",
        "https://127.0.0.1:4711", "http://localhost:4711", "http://127.0.0.1:4711/"})
    EXPECT_EQ(StatusOfHost(kHost, other), 403u) << other;
}

TEST(RequestRulesTest, NothingIsToldBeforeTheHostIsKnown) {
  EXPECT_EQ(StatusOf({.method = "GET", .target = "/", .host = "evil", .origin = ""}),
            403u);
  EXPECT_EQ(StatusOf({.method = "PUT", .target = "/", .host = kHost, .origin = ""}),
            404u);
}

TEST(RequestRulesTest, NothingIsWritten) {
  for (const char* const method :
       {"PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "", "get"})
    EXPECT_EQ(StatusOf({.method = method,
                        .target = "/0123456789abcdef/",
                        .host = kHost,
                        .origin = ""}),
              405u)
        << method;
}

TEST(RequestRulesTest, ParametersAreDecoded) {
  const WebRequest request = Admitted("api/export?heap=a%2Fb+c&x&y=&heap=second");
  EXPECT_EQ(request.path, "api/export");
  EXPECT_EQ(request.Parameter("heap"), "a/b c");
  EXPECT_EQ(request.Parameter("x"), "");
  EXPECT_EQ(request.Parameter("none"), "");
  EXPECT_EQ(Admitted("?").parameters.size(), 0u);
  for (const char* const wrong : {"%", "a=%2", "a=%2g", "a=%-1", "%zz=1"})
    EXPECT_EQ(StatusOfTarget(std::string("/0123456789abcdef/?") + wrong), 400u) << wrong;
  const auto refused = Admit(
      {.method = "GET", .target = "/0123456789abcdef/?%", .host = kHost, .origin = ""},
      kToken);
  EXPECT_STREQ(std::get<Refusal>(refused).error, "the parameters cannot be read");
}

TEST(RequestRulesTest, PathsStayText) {
  EXPECT_EQ(Admitted("api/../../etc/passwd").path, "api/../../etc/passwd");
  EXPECT_EQ(Admitted("%61pi").path, "%61pi");
}

TEST(RequestRulesTest, TokensHave128Bits) {
  EXPECT_EQ(RandomToken().size(), 32u);
  EXPECT_NE(RandomToken(), RandomToken());
}

}  // namespace
}  // namespace heapprofd
