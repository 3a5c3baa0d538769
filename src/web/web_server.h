// A server for one person's browser on the same machine: a page, its data, and answers to
// what the page asks. HTTP is Boost.Beast's; what this adds are bounds: who may ask
// (web/request_rules.h), how long, how much and how many at once, so that nobody who
// connects can make it wait, grow or stay.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "web/request_rules.h"

namespace heapprofd {

struct WebAnswer {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::string file_name = {};  // not empty: to be saved as a file of this name
};

// {"error": ..., "hint": ...}
WebAnswer WebError(unsigned status, const std::string& error, const std::string& hint);

struct WebLimits {
  std::chrono::milliseconds idle{0};            // without a request it ends; 0: never
  std::chrono::milliseconds request{10'000};    // from connecting to the request's end
  std::chrono::milliseconds work{20'000};       // on an answer until it is cancelled
  std::chrono::milliseconds grace{5'000};       // for it to be cancelled
  std::chrono::milliseconds delivery{120'000};  // of an answer
  size_t connections = 64;
  size_t of_stranger = 8;  // connections of one other user that have not shown the token
  size_t waiting = 8;      // requests whose answers are worked on, or wait for that
  uint32_t head_bytes = 8192;
  uint64_t body_bytes = 65536;
};

struct WebSite {
  std::string token;
  std::string page;       // HTML, at /TOKEN/
  std::string data = {};  // what it shows, at /TOKEN/data
  // Gives what is below "api/": on a thread of its own, one request after the other.
  std::function<WebAnswer(const WebRequest&)> answer;
  // Becomes true when what is worked on has taken too long, or nobody waits for it any
  // more; false before each request.
  std::atomic<bool>* cancel = nullptr;
};

enum class WebEnd : uint8_t {
  kIdle,
  kSignal,     // SIGINT, SIGTERM or SIGHUP
  kStillBusy,  // either, and an answer cannot be cancelled: its thread goes on
};

// Serves on a free port of 127.0.0.1 until it is idle or is ended; `announce` is told the
// address of the page.
Result<WebEnd> ServeWeb(const WebSite& site,
                        const WebLimits& limits,
                        const std::function<void(const std::string& url)>& announce);

}  // namespace heapprofd
