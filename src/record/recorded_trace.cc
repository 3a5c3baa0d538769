#include "record/recorded_trace.h"

#include <utility>

namespace heapprofd {

std::vector<Target*> AllTargets(const std::vector<std::unique_ptr<Session>>& sessions) {
  std::vector<Target*> all;
  for (const std::unique_ptr<Session>& session : sessions) {
    for (const std::unique_ptr<Target>& target : session->targets().all())
      all.push_back(target.get());
  }
  return all;
}

RecordedTrace::RecordedTrace(const RecordingConfig* config,
                             const std::vector<std::unique_ptr<Session>>* sessions,
                             TraceFile file)
    : config_(config),
      sessions_(sessions),
      writer_(std::move(file)),
      written_(&writer_),
      stream_(&writer_) {
  for (const std::unique_ptr<Session>& session : *sessions_) {
    if (session->config().stream_allocations)
      session->targets().set_events(&stream_);
  }
}

void RecordedTrace::WriteRequested(Session& session) {
  for (const std::unique_ptr<Target>& target : session.targets().all())
    Note(written_.WriteRequested(session, *target));
}

void RecordedTrace::WriteDump(Session& session,
                              Target& target,
                              const std::string& label) {
  Note(written_.Write(session, target, label));
  if (!target.is_recording())
    written_.SetComplete(target);
}

void RecordedTrace::EndDump(Session& session) {
  Note(written_.WriteRejected(session));
  Note(stream_.Flush());
  Note(writer_.Finish());
}

void RecordedTrace::FilterSymbols() {
  for (const std::unique_ptr<Session>& session : *sessions_) {
    for (const std::unique_ptr<Target>& target : session->targets().all())
      written_.FilterSymbols(session->config(), *target);
  }
}

Status RecordedTrace::WriteRest(uint64_t started_ns, const RecordingEnd& end) {
  for (const std::unique_ptr<Session>& session : *sessions_) {
    for (const std::unique_ptr<Target>& target : session->targets().all()) {
      if (!written_.IsComplete(*target))
        Note(written_.Write(*session, *target, ""));
    }
    Note(written_.WriteRejected(*session));
    Note(written_.WriteAbsent(*session, started_ns));
  }
  Note(stream_.Flush());
  const std::vector<Target*> all = AllTargets(*sessions_);
  for (const Target* target : all) {
    Note(writer_.WriteUnsampledChildren(target->profile()));
    Note(writer_.WriteMarks(target->profile()));
  }
  const NamedModules named = all.size() == 1 ? NamedModules::kAll : NamedModules::kFiles;
  for (const Target* target : all)
    Note(writer_.WriteModuleSymbols(target->profile(), named));
  Note(writer_.WriteEnd(end));
  Note(writer_.Finish());
  return status_;
}

void RecordedTrace::WriteAnew(uint64_t started_ns, const RecordingEnd& end) {
  const Status failure = std::exchange(status_, {});
  writer_ = TraceWriter(TraceFile::InMemory());
  written_ = WrittenTargets(&writer_);
  Note(WriteHead());
  static_cast<void>(WriteRest(started_ns, end));  // memory is no disk that could be full
  status_ = failure;
}

void RecordedTrace::Note(Status status) {
  if (status_.ok())
    status_ = std::move(status);
}

}  // namespace heapprofd
