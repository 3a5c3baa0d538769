#include "service/recordings/recording_request.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "control.pb.h"
#include "service/finisher_environment.h"

namespace heapprofd {
namespace {

std::vector<std::string> FinisherEnvironment(const protos::StartRequest& request) {
  std::vector<std::string> environment;
  std::copy_if(request.environment().begin(), request.environment().end(),
               std::back_inserter(environment), [](std::string_view entry) {
                 return IsFinisherVariable(entry.substr(0, entry.find('=')));
               });
  return environment;
}

}  // namespace

std::string FinishRequest::SearchPath() const {
  const std::string key = "PATH=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(key))
      return entry.substr(key.size());
  }
  return "";
}

Result<RecordingRequest> TakeRequest(ControlMessage message) {
  protos::StartRequest request;
  if (!request.ParseFromString(message.payload) ||
      message.fds.size() != (request.has_directory() ? 3u : 2u))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: the request has no descriptors or is not one of this "
                  "service's version; use the heap_profile that was installed with it");

  // Writing to anything else could make the service wait.
  struct stat status {};

  if (fstat(message.fds[0].get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: the trace must go to a regular file");
  if (request.has_directory() &&
      (fstat(message.fds[2].get(), &status) != 0 || !S_ISDIR(status.st_mode)))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: what comes for the results is no directory");
  return RecordingRequest{
      .trace_config = request.trace_config(),
      .trace = TraceFile(std::move(message.fds[0]), request.trace_path()),
      .standard_error = std::move(message.fds[1]),
      .finish = {
          .directory = request.has_directory() ? std::move(message.fds[2]) : ScopedFd(),
          .directory_path = request.directory(),
          .trace_path = request.trace_path(),
          .top = request.top(),
          .quiet = request.quiet(),
          .wants_status = request.wants_status(),
          .wants_dumps = request.wants_dumps(),
          .only_dumps = request.only_dumps(),
          .environment = FinisherEnvironment(request)}};
}

}  // namespace heapprofd
