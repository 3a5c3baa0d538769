#include "symbolize/llvm_symbolizer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files/root_environment.h"
#include "base/scoped_fd.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

using nlohmann::json;

// Of one answer, bytes: a name of 16 KiB per inlined call.
constexpr size_t kMaxAnswer = size_t{16} << 20;
constexpr size_t kMaxLines = 4096;

std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The name is the linker's where there is one.
SourceLine ParseLine(const json& symbol) {
  SourceLine line;
  const std::string name = TextAt(symbol, "FunctionName");
  line.function = Demangle(name);
  if (std::string_view(line.function) != name)
    line.system_name = name;
  line.file = TextAt(symbol, "FileName");
  if (line.file == "??")
    line.file = {};
  const auto number = symbol.find("Line");
  if (number != symbol.end() && number->is_number_unsigned())
    line.line = number->get<uint32_t>();
  return line;
}

std::string Questions(int fd, std::span<const uint64_t> addresses) {
  const std::string file =
      "\"/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd) + "\" ";
  std::string text;
  std::array<char, 32> number{};
  for (const uint64_t address : addresses) {
    snprintf(number.data(), number.size(), "0x%llx\n",
             static_cast<unsigned long long>(address));
    text += file + number.data();
  }
  return text;
}

class Process {
 public:
  // Whatever it is at.
  ~Process() {
    if (pid_ <= 0)
      return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // An errno, 0 for success.
  int Start(const std::string& program) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return errno;
    socket_ = ScopedFd(ends[0]);
    const ScopedFd child_end(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_end.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_end.get(), STDOUT_FILENO);
    std::string name = "llvm-symbolizer";
    std::string style = "--output-style=JSON";
    std::string names = "--no-demangle";  // done by us: see demangle.h
    std::array<char*, 4> arguments = {name.data(), style.data(), names.data(), nullptr};
    const int error =
        posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }

  // Sends what there is room for and takes what has come, once there is either. False:
  // nothing more will come.
  bool Exchange(std::string_view& unsent, std::string& received, uint64_t deadline_ns) {
    const auto wanted = static_cast<short>(unsent.empty() ? POLLIN : POLLIN | POLLOUT);
    pollfd fd{.fd = socket_.get(), .events = wanted, .revents = 0};
    const uint64_t now = MonotonicNs();
    const uint64_t left_ms = (deadline_ns - std::min(now, deadline_ns)) / 1'000'000;
    if (poll(&fd, 1, static_cast<int>(left_ms)) < 0)
      return errno == EINTR;
    if ((fd.revents & POLLOUT) != 0) {
      const ssize_t sent =
          send(socket_.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      unsent.remove_prefix(sent > 0 ? static_cast<size_t>(sent) : 0);
    }
    std::array<char, 65536> chunk;
    const ssize_t got = recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0)
      received.append(chunk.data(), static_cast<size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

 private:
  pid_t pid_ = -1;
  ScopedFd socket_;
};

// Moves the complete lines of `text` into `answers`, at most as many as were asked for.
bool TakeAnswers(std::string& text,
                 size_t wanted,
                 std::vector<std::vector<SourceLine>>& answers) {
  size_t at = 0;
  for (size_t end = 0;
       answers.size() < wanted && (end = text.find('\n', at)) != std::string::npos;
       at = end + 1) {
    auto lines = ParseLlvmAnswer(std::string_view(text).substr(at, end - at));
    if (!lines)
      return false;
    answers.push_back(std::move(*lines));
  }
  text.erase(0, at);
  return text.size() <= kMaxAnswer;
}

}  // namespace

Result<std::string> FindLlvmSymbolizer() {
  const std::string directories = TrustedPath();
  for (size_t at = 0; at <= directories.size();) {
    const size_t end = std::min(directories.find(':', at), directories.size());
    const std::string program = directories.substr(at, end - at) + "/llvm-symbolizer";
    if (end > at && access(program.c_str(), X_OK) == 0)
      return program;
    at = end + 1;
  }
  return Status(StatusCode::kInvalidArgument,
                "cannot symbolize with llvm-symbolizer: there is none in PATH; install "
                "it (apt-get install llvm) or unset HEAPPROFD_SYMBOLIZER");
}

std::optional<std::vector<SourceLine>> ParseLlvmAnswer(std::string_view text) {
  const json answer = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object())
    return std::nullopt;
  std::vector<SourceLine> lines;
  const auto symbols = answer.find("Symbol");
  if (symbols == answer.end() || !symbols->is_array())
    return lines;  // "Error": the file is not for it
  for (const json& symbol : *symbols) {
    if (!symbol.is_object() || lines.size() == kMaxLines)
      break;
    lines.push_back(ParseLine(symbol));
  }
  while (!lines.empty() && lines.back().function.empty() && lines.back().file.empty())
    lines.pop_back();
  return lines;
}

Result<std::vector<std::vector<SourceLine>>> AskLlvmSymbolizer(
    const std::string& program,
    int fd,
    std::span<const uint64_t> addresses,
    uint64_t patience_ns) {
  const uint64_t deadline_ns = MonotonicNs() + patience_ns;
  Process process;
  if (const int error = process.Start(program); error != 0)
    return Status::FromErrno("cannot run " + program, error);
  const std::string questions = Questions(fd, addresses);
  std::string_view unsent = questions;
  std::string received;
  std::vector<std::vector<SourceLine>> answers;
  while (answers.size() < addresses.size()) {
    if (MonotonicNs() >= deadline_ns)
      return Status(StatusCode::kUnavailable,
                    "cannot use " + program + ": it has not answered in time");
    if (!process.Exchange(unsent, received, deadline_ns))
      return Status(StatusCode::kUnavailable,
                    "cannot use " + program + ": it ended before it had answered");
    if (!TakeAnswers(received, addresses.size(), answers))
      return Status(StatusCode::kUnavailable,
                    "cannot use " + program +
                        ": it does not answer in JSON; version 14 or later is needed");
  }
  return answers;
}

}  // namespace heapprofd
