#include "hotspot/heap_dump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files/write_all.h"
#include "base/format.h"
#include "hotspot/attach_answer.h"
#include "hotspot/attach_socket.h"
#include "hotspot/dump_pipe.h"
#include "hotspot/errand.h"
#include "hotspot/side_file.h"

namespace heapprofd {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint64_t kLookNs = 500'000'000;  // at files beside the pipe
constexpr uint64_t kCleanUpPatienceNs = 5'000'000'000;
constexpr std::string_view kCreated = "Heap dump file created [";
constexpr char kStageConnect[] = "being asked to listen";
constexpr char kStageCollect[] = "collecting garbage";
constexpr char kStageBegin[] = "beginning";
constexpr char kStageDump[] = "dumping";
constexpr char kStageEnd[] = "ending";

uint64_t SizeOf(int fd) {
  struct stat status {};

  return fstat(fd, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

struct DumpOrder {
  const DumpRequest& request;
  std::string pipe_name;
  int output;
  uint64_t room;
};

// All that the virtual machine writes, until it closes the pipe, or answers without.
// Gives the number of bytes.
Result<uint64_t> Pump(const DumpPipe& pipe,
                      int socket,
                      const DumpOrder& order,
                      const Sender& sender) {
  std::string piece(kPieceBytes, '\0');
  uint64_t bytes = 0;
  SideProgress beside;
  while (true) {
    std::array<pollfd, 2> fds = {pollfd{.fd = pipe.fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = socket, .events = POLLRDHUP, .revents = 0}};
    const Status waited = sender.Await(fds, MonotonicNs() + kLookNs);
    if (waited.code() == StatusCode::kTryAgain) {
      beside.Look(pipe, sender);
      continue;
    }
    HPD_TRY(waited);
    // It may have written, and closed both, since the pipe was looked at.
    if (fds[0].revents == 0 && poll(fds.data(), 1, 0) == 0)
      return bytes;
    const ssize_t count = read(pipe.fd(), piece.data(), piece.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (count < 0)
      return Status::FromErrno("the dump cannot be read", errno);
    if (count == 0)
      return bytes;
    if (bytes == 0)
      sender.Tell(kStageDump);
    bytes += static_cast<uint64_t>(count);
    if (bytes > order.room)
      return Status(StatusCode::kIo, "the dump is larger than the " +
                                         FormatBytes(static_cast<double>(order.room)) +
                                         " that it may have; " +
                                         order.request.room_advice);
    const int error = WriteAll(order.output, {piece.data(), static_cast<size_t>(count)});
    if (error != 0)
      return Status::FromErrno("the dump cannot be written", error);
  }
}

// Only since JDK 17 a dump can go to what is there already, as a pipe is.
Status CheckKnowsPipes(const std::string& help, pid_t number) {
  if (help.find("-overwrite") != std::string::npos)
    return {};
  const std::string pid = std::to_string(number);
  return Status(StatusCode::kUnavailable,
                "its virtual machine writes dumps to new files only (from JDK 17 on to "
                "pipes, too); run jcmd " +
                    pid + " GC.heap_dump FILE, and heap_profile hprof histogram FILE");
}

// "bytes seconds", as `answer` tells them.
Result<std::string> FiguresIn(const std::string& answer, uint64_t bytes) {
  const size_t at = answer.find(kCreated);
  if (at == std::string::npos)
    return Status(StatusCode::kIo, "it answers \"" + answer + "\"");
  const char* const figures = answer.c_str() + at + kCreated.size();
  char* end = nullptr;
  const uint64_t written = strtoull(figures, &end, 10);
  double seconds = 0;
  (void)sscanf(end, " bytes in %lf", &seconds);  // NOLINT(cert-err34-c): 0 then
  if (written != bytes)
    return Status(StatusCode::kIo, "of " + std::to_string(written) +
                                       " bytes of the dump only " +
                                       std::to_string(bytes) + " have arrived");
  return std::to_string(bytes) + " " + std::to_string(seconds);
}

// In the messenger.
Result<std::string> Dump(const JavaProcess& process,
                         const DumpOrder& order,
                         const Sender& sender) {
  const bool with_garbage = order.request.with_garbage;
  HPD_TRY_ASSIGN(const Attachment attachment,
                 OpenAttachment(process, sender, order.request.patience));
  sender.Tell(kStageConnect);
  HPD_TRY_ASSIGN(const std::string help,
                 AskMachine(attachment, {"jcmd", "help GC.heap_dump"}));
  HPD_TRY(CheckKnowsPipes(help, process.pid));
  if (HasSideFiles(help))
    HPD_TRY(CheckRoomBeside(attachment));
  HPD_TRY_ASSIGN(const ScopedFd socket, ConnectTo(attachment));
  HPD_TRY_ASSIGN(DumpPipe pipe,
                 DumpPipe::Create(attachment.temporary.get(), order.pipe_name));
  const std::string command = "GC.heap_dump " + std::string(with_garbage ? "-all " : "") +
                              "-overwrite " + pipe.path();
  HPD_TRY(SendQuestion(socket.get(), {"jcmd", command}, sender));
  sender.Tell(with_garbage ? kStageBegin : kStageCollect);
  HPD_TRY_ASSIGN(const uint64_t bytes, Pump(pipe, socket.get(), order, sender));
  sender.Tell(kStageEnd);
  HPD_TRY_ASSIGN(const std::string answer, ReceiveAnswer(socket.get(), sender));
  HPD_TRY_ASSIGN(const std::string figures, FiguresIn(answer, bytes));
  return figures + " " + pipe.Remove().message();
}

// A messenger that was killed has left its pipe, and perhaps the virtual machine waiting
// at it. Gives what to say when that could not be removed.
std::string CleanUp(const JavaProcess& process, const std::string& pipe_name) {
  const Errand errand =
      ErrandTo(process, [&](const Sender& sender) -> Result<std::string> {
        sender.Tell("its /tmp does not answer");
        HPD_TRY_ASSIGN(const ScopedFd temporary, OpenTemporary(process));
        HPD_TRY(DumpPipe::RemoveLeft(temporary.get(), pipe_name));
        return std::string();
      });
  const Result<std::string> result =
      RunErrand(errand, {.progress = [] { return uint64_t{0}; },
                         .patience_ns = kCleanUpPatienceNs,
                         .show = [](const std::string&) {}});
  if (result.ok())
    return "";
  return "; its /tmp/" + pipe_name + " may be left (" + result.status().message() +
         "): read the pipe in it, if there is one, and remove it";
}

}  // namespace

Result<TakenDump> TakeHeapDump(const JavaProcess& process,
                               const DumpRequest& request,
                               int output,
                               uint64_t room) {
  const DumpOrder order{request, DumpPipe::FreshName(process.inner_pid), output, room};
  Errand errand = ErrandTo(
      process, [&](const Sender& sender) { return Dump(process, order, sender); });
  errand.kept.push_back(output);
  const auto show = [&](const std::string& stage) {
    const uint64_t bytes = SizeOf(output);
    request.show(process.Description() + ": " + stage +
                 (bytes == 0 ? "" : ", " + FormatBytes(static_cast<double>(bytes))));
  };
  const Result<std::string> result =
      RunErrand(errand, {.progress = [output] { return SizeOf(output); },
                         .patience_ns = request.patience.without_progress_ns,
                         .show = show,
                         .stop_fd = request.stop_fd});
  if (!result.ok()) {
    const std::string left = CleanUp(process, order.pipe_name);
    return Status(result.status().code(),
                  "cannot take a heap dump of " + process.Description() + ": " +
                      CauseOf(result.status(), request.patience) + left);
  }
  TakenDump taken;
  char* end = nullptr;
  taken.bytes = strtoull(result.value().c_str(), &end, 10);
  taken.seconds = strtod(end, &end);
  taken.left = *end == ' ' ? end + 1 : "";
  return taken;
}

}  // namespace heapprofd
