#include "web/request_rules.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/status.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr Refusal kWrongHost = {403, "the request is for another host",
                                "open the address that heap_profile view has printed"};
constexpr Refusal kManyHosts = {400, "the request names several hosts",
                                "send one line of Host"};
constexpr Refusal kWrongOrigin = {403, "the request comes from another page",
                                  "only the page itself may ask"};
constexpr Refusal kNotFound = {404, "there is nothing here",
                               "open the address that heap_profile view has printed"};
constexpr Refusal kWrongMethod = {405, "this method is not answered",
                                  "use GET, and POST for api/sql"};
constexpr Refusal kWrongParameters = {400, "the parameters cannot be read",
                                      "write them as name=value, with %XX for bytes"};

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// A name that was made to lead here (DNS rebinding) is none of these. Any port: it may
// have been forwarded.
bool IsOurHost(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost"}) {
    if (host == name)
      return true;
    if (host.starts_with(name) && host[name.size()] == ':' &&
        IsPort(host.substr(name.size() + 1)))
      return true;
  }
  return false;
}

// Takes as long whatever is in them.
bool IsSame(std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

// Of a parameter's name or value.
std::optional<std::string> Decode(std::string_view text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at] == '+' ? ' ' : text[at];
      continue;
    }
    unsigned byte = 0;
    const char* const digits = text.data() + at + 1;
    if (text.size() - at < 3 ||
        std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
      return std::nullopt;
    decoded += static_cast<char>(byte);
    at += 2;
  }
  return decoded;
}

std::optional<std::map<std::string, std::string>> ParametersOf(std::string_view query) {
  std::map<std::string, std::string> parameters;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    const auto name = Decode(pair.substr(0, equals));
    const auto value = Decode(pair.substr(std::min(equals + 1, pair.size())));
    if (!name || !value)
      return std::nullopt;
    parameters.emplace(*name, *value);
  }
  return parameters;
}

}  // namespace

std::string WebRequest::Parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? "" : found->second;
}

std::variant<WebRequest, Refusal> Admit(const RequestHead& head,
                                        const std::string& token) {
  if (head.hosts > 1)
    return kManyHosts;
  if (!IsOurHost(head.host))
    return kWrongHost;
  const std::string_view target = head.target;
  const size_t behind = token.size() + 1;
  if (target.size() <= behind || target[0] != '/' || target[behind] != '/' ||
      !IsSame(target.substr(1, token.size()), token))
    return kNotFound;
  if (!head.origin.empty() && head.origin != "http://" + std::string(head.host))
    return kWrongOrigin;
  if (head.method != "GET" && head.method != "POST")
    return kWrongMethod;
  const std::string_view rest = target.substr(behind + 1);
  const size_t mark = std::min(rest.find('?'), rest.size());
  auto parameters = ParametersOf(rest.substr(std::min(mark + 1, rest.size())));
  if (!parameters)
    return kWrongParameters;
  return WebRequest{.is_post = head.method == "POST",
                    .path = std::string(rest.substr(0, mark)),
                    .parameters = std::move(*parameters)};
}

std::string RandomToken() {
  std::array<char, 16> bytes{};
  HPD_CHECK(getrandom(bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
  return HexEncode({bytes.data(), bytes.size()});
}

}  // namespace heapprofd
