// Error handling outside the target process: a Status says what went wrong and what to do
// about it, a Result is a value or a Status. No exceptions are thrown by our code.
//
// Message form: "cannot <verb> <object>: <cause>; <what to do>".
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace heapprofd {

enum class StatusCode : uint8_t {
  kOk,
  kInvalidArgument,  // the user asked for something impossible: exit code 2
  kNotFound,
  kCorrupt,  // input bytes that no writer of ours or of the format's owner could have
             // made
  kUnavailable,
  kTryAgain,  // a race with another process; the same again may succeed
  kIo,
};

class [[nodiscard]] Status {
 public:
  Status() = default;

  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  // kIo with the text of `error_number` as its cause: "cannot open /x: No such file or
  // directory".
  static Status FromErrno(std::string_view what, int error_number);

  bool ok() const { return code_ == StatusCode::kOk; }

  StatusCode code() const { return code_; }

  const std::string& message() const { return message_; }

  // Adds the caller's context in front: "reading maps of pid 12: permission denied".
  Status WithContext(std::string_view context) &&;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// The user asked for something impossible.
inline Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

inline const Status& OkStatus() {
  static const Status ok;
  return ok;
}

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::move(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Status error) : state_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }

  // Only when ok.
  const T& value() const& { return std::get<T>(state_); }

  T& value() & { return std::get<T>(state_); }

  T&& value() && { return std::get<T>(std::move(state_)); }

  // Ok when there is a value.
  const Status& status() const& { return ok() ? OkStatus() : std::get<Status>(state_); }

  Status status() && { return ok() ? Status() : std::get<Status>(std::move(state_)); }

 private:
  std::variant<T, Status> state_;
};

// Ends the program with file and line: for broken invariants of our own, never for input.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace heapprofd

#define HPD_CHECK(condition) \
  ((condition) ? void(0) : ::heapprofd::CheckFailed(#condition, __FILE__, __LINE__))

// Returns the Status of `expression` from the calling function when it is an error.
#define HPD_TRY(expression)                                              \
  do {                                                                   \
    if (::heapprofd::Status hpd_status = (expression); !hpd_status.ok()) \
      return hpd_status;                                                 \
  } while (0)

// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations take none
#define HPD_CONCAT_INNER(a, b) a##b
#define HPD_CONCAT(a, b) HPD_CONCAT_INNER(a, b)
#define HPD_TRY_ASSIGN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                 \
  if (!temporary.ok())                                           \
    return std::move(temporary).status();                        \
  declaration = std::move(temporary).value()
// HPD_TRY_ASSIGN(auto fd, OpenFile(path)): the value, or return the error.
#define HPD_TRY_ASSIGN(declaration, expression) \
  HPD_TRY_ASSIGN_INNER(HPD_CONCAT(hpd_result_, __LINE__), declaration, expression)
// NOLINTEND(bugprone-macro-parentheses)
