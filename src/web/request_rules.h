// Which requests a server on 127.0.0.1 answers. Every user and every page in every
// browser of the machine can send it some: who knows the token may ask, and no page but
// the server's own may make a browser ask for it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace heapprofd {

// What is checked of a request before its body means anything.
struct RequestHead {
  std::string_view method;
  std::string_view target;  // "/TOKEN/api/sql?limit=10"
  std::string_view host;
  size_t hosts = 1;         // header fields of that name
  std::string_view origin;  // "": the browser, or another program, has named none
};

struct WebRequest {
  bool is_post = false;
  std::string path;  // below the token: "", "api/sql"
  std::map<std::string, std::string> parameters = {};
  std::string body = {};

  // "" when it is not there.
  std::string Parameter(const std::string& name) const;
};

struct Refusal {
  unsigned status = 0;
  const char* error = "";
  const char* hint = "";
};

// The request without its body, or why it has no answer.
std::variant<WebRequest, Refusal> Admit(const RequestHead& head,
                                        const std::string& token);

// 128 random bits as hexadecimal digits. Ends the program when the kernel has none: a
// token that can be guessed would be no token.
std::string RandomToken();

}  // namespace heapprofd
