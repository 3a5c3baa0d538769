#include "service/patient_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace heapprofd {
namespace {

constexpr size_t kPieceSize =
    4096;  // what a pipe has room for when it says so (PIPE_BUF)

struct PatientOutput {
  int fd;
  int patience_ms;
  bool is_given_up = false;
};

// Bytes written; -1: nobody reads.
ssize_t WritePiece(const PatientOutput& output, const char* data, size_t size) {
  pollfd writable{.fd = output.fd, .events = POLLOUT, .revents = 0};
  if (poll(&writable, 1, output.patience_ms) <= 0 || (writable.revents & POLLOUT) == 0)
    return -1;
  return write(output.fd, data, std::min(size, kPieceSize));
}

ssize_t WritePatiently(void* cookie, const char* data, size_t size) {
  auto* output = static_cast<PatientOutput*>(cookie);
  for (size_t done = 0; done < size && !output->is_given_up;) {
    const ssize_t written = WritePiece(*output, data + done, size - done);
    output->is_given_up = written <= 0;
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  return static_cast<ssize_t>(size);  // what is thrown away is no error
}

int Close(void* cookie) {
  delete static_cast<PatientOutput*>(cookie);
  return 0;
}

}  // namespace

void MakePatient(FILE** stream, int fd, int patience_ms) {
  FILE* patient = fopencookie(
      new PatientOutput{.fd = fd, .patience_ms = patience_ms}, "w",
      {.read = nullptr, .write = WritePatiently, .seek = nullptr, .close = Close});
  if (patient == nullptr)
    return;
  setvbuf(patient, nullptr, _IONBF, 0);
  *stream = patient;
}

}  // namespace heapprofd
