#include "web/web_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/scoped_fd.h"
#include "web/answering_thread.h"
#include "web/peer_user.h"

namespace heapprofd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::chrono::seconds kFarewell{1};  // to take an answer to what was not read
constexpr std::chrono::seconds kEndPatience{1};
constexpr std::chrono::milliseconds kAcceptPause{100};  // when there are no descriptors
constexpr int kAcceptsOfTurn = 64;  // then those that are connected have theirs

class Exchange;

// All but the answers is done by one thread, which never waits for anybody.
class Server {
 public:
  Server(const WebSite& site, const WebLimits& limits);

  // From here on signals end it.
  Status Listen();
  std::string url() const;
  WebEnd Run();

  const WebSite& site() const { return site_; }

  const WebLimits& limits() const { return limits_; }

  asio::io_context& io() { return io_; }

  AnsweringThread& answers() { return answers_; }

  // Somebody who may has asked for something.
  void RestartIdle();

  std::list<Exchange*>& exchanges() { return exchanges_; }

  // The user has shown the token: a browser need not be its owner's (sudo, ssh).
  void Trust(std::optional<uid_t> user);

 private:
  void Accept();
  bool AcceptOne();
  bool MayCome(const std::optional<Peer>& peer) const;
  void Take(tcp::socket socket, std::optional<uid_t> user);
  void AwaitSignals();
  void End(WebEnd end);

  const WebSite& site_;
  const WebLimits limits_;
  std::list<Exchange*> exchanges_;  // the oldest first; they go with io_
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  asio::steady_timer idle_{io_};
  asio::signal_set signals_{io_};
  PeerUsers peers_;
  std::set<uid_t> trusted_ = {geteuid()};
  WebEnd end_ = WebEnd::kIdle;
  AnsweringThread answers_;
};

// One connection, for one request.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(tcp::socket socket, Server& server, std::optional<uid_t> user)
      : server_(server),
        user_(user),
        stream_(std::move(socket)),
        late_(server.io()),
        place_(server.exchanges().insert(server.exchanges().end(), this)) {}

  ~Exchange() { server_.exchanges().erase(place_); }

  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void Read();

  // It may ask; or it has been closed, and goes as soon as its callbacks have run.
  bool is_admitted() const { return is_admitted_; }

  // Who connects; nullopt: not known.
  std::optional<uid_t> user() const { return user_; }

  void Close() {
    is_admitted_ = true;  // another one is next
    stream_.close();
  }

 private:
  bool is_page() const { return ready_ == &server_.site().page; }

  void HasRead(error_code error);
  std::optional<WebAnswer> AnswerAtOnce();
  std::optional<WebAnswer> WorkOn(WebRequest request);
  void AwaitTurn();
  void Begin();
  void WatchClient();
  void AwaitCancel(std::chrono::milliseconds patience, bool is_cancelled);
  WebAnswer LateAnswer() const;
  void Deliver(WebAnswer answer);
  void HearOut(error_code error);

  Server& server_;
  std::optional<uid_t> user_;
  beast::tcp_stream stream_;
  asio::steady_timer late_;
  std::list<Exchange*>::iterator place_;
  beast::flat_buffer buffer_{16384};
  http::request_parser<http::string_body> parser_;
  bool is_admitted_ = false;
  const std::string* ready_ = nullptr;  // its answer, where nothing is to be done for it
  uint64_t work_ = 0;                   // its number
  bool has_begun_ = false;
  bool is_late_ = false;  // it was told to end, as it took too long
  bool is_answered_ = false;
  WebAnswer answer_;
  http::response<http::span_body<const char>> response_;
};

void Exchange::Read() {
  parser_.header_limit(server_.limits().head_bytes);
  parser_.body_limit(server_.limits().body_bytes);
  stream_.expires_after(server_.limits().request);
  http::async_read(
      stream_, buffer_, parser_,
      [self = shared_from_this()](error_code error, size_t) { self->HasRead(error); });
}

void Exchange::HasRead(error_code error) {
  stream_.expires_never();
  if (error == http::error::body_limit)
    return Deliver(WebError(413, "the request is too large", "send less"));
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return Deliver(WebError(431, "the head of the request is too large", "send less"));
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    return;
  if (error &&
      error.category() == http::make_error_code(http::error::bad_method).category())
    return Deliver(WebError(400, "this is no request of HTTP/1.1", error.message()));
  if (error)
    return;  // too late, or gone
  if (std::optional<WebAnswer> answer = AnswerAtOnce())
    Deliver(std::move(*answer));
}

// Nothing: it is worked on.
std::optional<WebAnswer> Exchange::AnswerAtOnce() {
  auto& message = parser_.get();
  const auto text = [](boost::string_view part) {
    return std::string_view(part.data(), part.size());
  };
  auto admitted = Admit({.method = text(message.method_string()),
                         .target = text(message.target()),
                         .host = text(message[http::field::host]),
                         .hosts = message.count(http::field::host),
                         .origin = text(message[http::field::origin])},
                        server_.site().token);
  if (const auto* const refusal = std::get_if<Refusal>(&admitted))
    return WebError(refusal->status, refusal->error, refusal->hint);
  is_admitted_ = true;
  server_.Trust(user_);
  server_.RestartIdle();
  auto& request = std::get<WebRequest>(admitted);
  const WebSite& site = server_.site();
  if (!request.is_post && request.path.empty())
    ready_ = &site.page;
  else if (!request.is_post && request.path == "data")
    ready_ = &site.data;
  if (ready_ != nullptr)
    return WebAnswer{.type = is_page() ? "text/html; charset=utf-8"
                                       : "application/octet-stream"};
  request.body = std::move(message.body());
  return WorkOn(std::move(request));
}

std::optional<WebAnswer> Exchange::WorkOn(WebRequest request) {
  work_ = server_.answers().Submit(
      [weak = weak_from_this(), &server = server_, request = std::move(request)] {
        asio::post(server.io(), [weak] {
          if (const std::shared_ptr<Exchange> self = weak.lock())
            self->Begin();
        });
        WebAnswer answer = server.site().answer(request);
        asio::post(server.io(), [weak, answer = std::move(answer)]() mutable {
          if (const std::shared_ptr<Exchange> self = weak.lock())
            self->Deliver(self->is_late_ && answer.status == 503 ? self->LateAnswer()
                                                                 : std::move(answer));
        });
      });
  if (work_ == 0)
    return WebError(503, "too many requests wait for their answers", "try again later");
  AwaitTurn();
  WatchClient();
  return std::nullopt;
}

// As long as those before it may take; with nobody there it begins at once, but not
// necessarily before this thread goes on.
void Exchange::AwaitTurn() {
  const WebLimits& limits = server_.limits();
  const size_t ahead = std::max<size_t>(server_.answers().CountAhead(work_), 1);
  late_.expires_after(ahead * (limits.work + limits.grace));
  late_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->has_begun_ || self->is_answered_)
      return;
    self->server_.answers().Cancel(self->work_);
    self->Deliver(
        WebError(503, "the answers before this one take too long", "try again later"));
  });
}

// Its time is that of its own answer.
void Exchange::Begin() {
  has_begun_ = true;
  if (!is_answered_)
    AwaitCancel(server_.limits().work, /*is_cancelled=*/false);
}

// Nobody is left to take the answer when the other side has closed.
void Exchange::WatchClient() {
  stream_.socket().async_wait(
      tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
        char byte = 0;
        if (error || self->is_answered_)
          return;
        self->stream_.socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek,
                                       error);
        if (!error)
          return;  // it has more to say, which nobody reads
        self->server_.answers().Cancel(self->work_);
        self->is_answered_ = true;
        self->late_.cancel();
        self->Close();
      });
}

void Exchange::AwaitCancel(std::chrono::milliseconds patience, bool is_cancelled) {
  late_.expires_after(patience);
  late_.async_wait([self = shared_from_this(), is_cancelled](error_code error) {
    if (error || self->is_answered_)
      return;
    if (is_cancelled)
      return self->Deliver(WebError(504, "the answer takes too long",
                                    "ask for less; other questions wait until it ends"));
    self->is_late_ = true;
    self->server_.answers().Cancel(self->work_);
    self->AwaitCancel(self->server_.limits().grace, /*is_cancelled=*/true);
  });
}

// Instead of that it was cancelled: nobody has done so.
WebAnswer Exchange::LateAnswer() const {
  const std::chrono::duration<double> limit = server_.limits().work;
  return WebError(503,
                  "the answer took longer than " + FormatDuration(limit.count()) +
                      " and was given up",
                  "ask for less, such as one dump or one function; heap_profile query "
                  "takes as long as it needs");
}

void Exchange::Deliver(WebAnswer answer) {
  if (std::exchange(is_answered_, true))
    return;
  late_.cancel();
  error_code ignored;
  stream_.socket().cancel(ignored);  // no longer watched
  answer_ = std::move(answer);
  const std::string& body = ready_ != nullptr ? *ready_ : answer_.body;
  response_.version(11);
  response_.result(answer_.status);
  response_.keep_alive(false);
  response_.set(http::field::content_type, answer_.type);
  response_.set(http::field::cache_control, "no-store");
  response_.set("Content-Security-Policy",
                is_page() ? "frame-ancestors 'none'"  // the rest is in the page
                          : "default-src 'none'; frame-ancestors 'none'");
  response_.set("Cross-Origin-Resource-Policy", "same-origin");
  response_.set("Referrer-Policy", "no-referrer");
  response_.set("X-Content-Type-Options", "nosniff");
  if (!answer_.file_name.empty())
    response_.set(http::field::content_disposition,
                  "attachment; filename=\"" + answer_.file_name + "\"");
  response_.body() = {body.data(), body.size()};
  response_.prepare_payload();
  stream_.expires_after(server_.limits().delivery);
  http::async_write(stream_, response_,
                    [self = shared_from_this()](error_code error, size_t) {
                      error_code ended;
                      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ended);
                      self->stream_.expires_after(kFarewell);
                      self->HearOut(error ? error : ended);
                    });
}

// Closing while something is unread would take the answer back.
void Exchange::HearOut(error_code error) {
  if (error)
    return;
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(4096),
      [self = shared_from_this()](error_code next, size_t) { self->HearOut(next); });
}

Server::Server(const WebSite& site, const WebLimits& limits)
    : site_(site), limits_(limits), answers_(limits.waiting, site.cancel) {}

Status Server::Listen() {
  const tcp::endpoint here(asio::ip::address_v4::loopback(), 0);
  error_code error;
  acceptor_.open(here.protocol(), error);
  // The browser that is started is not to hold it when we have ended.
  if (!error)
    fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error)
    acceptor_.bind(here, error);
  if (!error)
    acceptor_.listen(tcp::acceptor::max_listen_connections, error);
  if (!error)
    acceptor_.non_blocking(true, error);
  if (error)
    return Status(StatusCode::kIo, "cannot listen on 127.0.0.1: " + error.message());
  AwaitSignals();
  return {};
}

std::string Server::url() const {
  return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/" +
         site_.token + "/";
}

WebEnd Server::Run() {
  RestartIdle();
  Accept();
  io_.run();
  return answers_.Stop(kEndPatience) ? end_ : WebEnd::kStillBusy;
}

void Server::AwaitSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};

    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN)  // as nohup does
      signals_.add(signal);
  }
  signals_.async_wait([this](error_code error, int) {
    if (!error)
      End(WebEnd::kSignal);
  });
}

void Server::RestartIdle() {
  if (limits_.idle.count() == 0)
    return;
  idle_.expires_after(limits_.idle);
  idle_.async_wait([this](error_code error) {
    if (error)
      return;
    // An answer that nobody waits for any more may have no end.
    const bool is_used = std::any_of(exchanges_.begin(), exchanges_.end(),
                                     [](const Exchange* s) { return s->is_admitted(); });
    if (is_used)
      RestartIdle();
    else
      End(WebEnd::kIdle);
  });
}

void Server::End(WebEnd end) {
  end_ = end;
  io_.stop();
}

// Several in a turn: as long as the kernel has room for those that wait, nobody is told to
// try again in a second.
void Server::Accept() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](error_code error) {
    bool has_failed = static_cast<bool>(error);
    for (int i = 0; i < kAcceptsOfTurn && !has_failed; ++i)
      has_failed = !AcceptOne();
    if (!has_failed || errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
      return Accept();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code) { Accept(); });
  });
}

// False: errno says why.
bool Server::AcceptOne() {
  ScopedFd fd(
      accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid())
    return false;
  const std::optional<Peer> peer = peers_.Of(fd.get());
  tcp::socket socket(io_);
  error_code error;
  if (MayCome(peer) && !socket.assign(tcp::v4(), fd.get(), error)) {
    fd.release();
    Take(std::move(socket), peer ? std::optional(peer->user) : std::nullopt);
  }
  return true;
}

void Server::Trust(std::optional<uid_t> user) {
  if (user)
    trusted_.insert(*user);
}

// Whoever floods the server loses that user's own connections.
bool Server::MayCome(const std::optional<Peer>& peer) const {
  if (!peer)
    return true;
  const auto waiting = std::ranges::count_if(exchanges_, [&](const Exchange* exchange) {
    return !exchange->is_admitted() && exchange->user() == peer->user;
  });
  return !peer->has_left && (trusted_.contains(peer->user) ||
                             static_cast<size_t>(waiting) < limits_.of_stranger);
}

// Of too many the oldest one goes of those that have not shown that they may ask.
void Server::Take(tcp::socket socket, std::optional<uid_t> user) {
  if (exchanges_.size() >= limits_.connections) {
    for (Exchange* const exchange : exchanges_) {
      if (!exchange->is_admitted()) {
        exchange->Close();
        break;
      }
    }
  }
  if (exchanges_.size() < 2 * limits_.connections)
    std::make_shared<Exchange>(std::move(socket), *this, user)->Read();
}

}  // namespace

WebAnswer WebError(unsigned status, const std::string& error, const std::string& hint) {
  const nlohmann::json json = {{"error", error}, {"hint", hint}};
  return {.status = status,
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

Result<WebEnd> ServeWeb(const WebSite& site,
                        const WebLimits& limits,
                        const std::function<void(const std::string& url)>& announce) {
  auto server = std::make_unique<Server>(site, limits);
  HPD_TRY(server->Listen());
  announce(server->url());
  const WebEnd end = server->Run();
  if (end == WebEnd::kStillBusy)
    (void)server.release();  // its thread goes on with it
  return end;
}

}  // namespace heapprofd
