#include "cli/hprof/opened/kept_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/files/own_file.h"
#include "cli/output_file.h"
#include "hprof/index/heap_index.h"

namespace heapprofd {
namespace {

std::string NotUsed(const OpenedDump& opened) {
  return "its index " + opened.index_path + " is not used";
}

void Note(OpenedDump* opened, const std::string& what, const std::string& why) {
  opened->notes.push_back(what + ": " + why);
}

// Invalid: there is none. Who may write an index may say anything of the dump.
Result<ScopedFd> OpenIndex(const std::string& path) {
  ScopedFd fd = OpenRegular(path, O_NOFOLLOW);
  if (!fd.valid() && errno == ENOENT)
    return fd;

  struct stat status {};

  const bool is_file = fd.valid() || errno != EINVAL;
  if (is_file && (!fd.valid() || fstat(fd.get(), &status) != 0))
    return Status(StatusCode::kIo, std::string(strerror(errno)));
  const bool is_ours = status.st_uid == geteuid() || status.st_uid == 0;
  if (!is_file || !is_ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Status(StatusCode::kUnavailable,
                  "it is no file that only you or root can write");
  return fd;
}

// Invalid: there is none that could be used, as of a dump that is in no file.
ScopedFd FindKept(OpenedDump* opened) {
  Result<ScopedFd> fd = OpenIndex(opened->index_path);
  if (fd.ok())
    return std::move(fd).value();
  Note(opened, NotUsed(*opened), fd.status().message());
  return {};
}

// nullopt: there is none to use.
std::optional<hprof::HeapGraph> ReadKept(OpenedDump* opened,
                                         const hprof::IndexKey& key,
                                         ScopedFd fd) {
  if (!fd.valid())
    return std::nullopt;
  const std::string what = NotUsed(*opened);
  Result<hprof::MappedInput> input =
      hprof::MappedInput::Map(std::move(fd), opened->index_path);
  if (!input.ok()) {
    Note(opened, what, input.status().message());
    return std::nullopt;
  }
  const auto index = std::make_shared<hprof::MappedInput>(std::move(input).value());
  const DumpOfFile& source = *opened->source;
  Result<hprof::HeapGraph> heap =
      ReadIndex(index, key, source.file, source.input.bytes());
  if (heap.ok()) {
    opened->index = index;
    return std::move(heap).value();
  }
  if (!opened->keep_index)  // else it is replaced
    Note(opened, what,
         heap.status().code() == StatusCode::kNotFound
             ? "the dump has changed since, or it was made with another --holding or by "
               "another version; --keep-index replaces it"
             : "it is damaged, or no index; --keep-index replaces it");
  return std::nullopt;
}

Status WriteKept(const OpenedDump& opened,
                 const hprof::IndexKey& key,
                 const hprof::HeapGraph& heap) {
  const std::atomic<bool> cancelled = false;
  HPD_TRY_ASSIGN(const Retention retention, FindRetention(heap.graph, cancelled));
  HPD_TRY(opened.Check());
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::Create(opened.index_path));
  HPD_TRY(WriteIndex(key, opened.source->file, heap, retention,
                     [&output](std::string_view bytes) { return output.Write(bytes); }));
  HPD_TRY(output.Settle());
  return output.Finish();
}

Result<hprof::HeapGraph> LoadFromDump(OpenedDump* opened) {
  const DumpOfFile& source = *opened->source;
  return hprof::LoadGraph(source.file, *source.dump, opened->holding);
}

// What it cannot be kept for; empty: nothing.
std::string ReasonNotToKeep(const OpenedDump& opened,
                            const Result<hprof::IndexKey>& key) {
  if (opened.index_path.empty())
    return "it is in no file of its own";
  if (!key.ok())
    return key.status().message();
  return opened.is_damaged ? "it is damaged" : "";
}

}  // namespace

Result<hprof::HeapGraph> LoadGraphOf(OpenedDump* opened) {
  ScopedFd fd = FindKept(opened);
  if (!fd.valid() && !opened->keep_index)
    return LoadFromDump(opened);
  Result<hprof::IndexKey> key = KeyOf(opened->source->input);
  const std::string reason = ReasonNotToKeep(*opened, key);
  constexpr char kNotKept[] = "no index of it is kept";
  if (!reason.empty()) {
    if (opened->keep_index)
      Note(opened, kNotKept, reason);
    return LoadFromDump(opened);
  }
  key.value().dump = static_cast<uint32_t>(opened->number);
  key.value().holding = static_cast<uint64_t>(opened->holding);
  std::optional<hprof::HeapGraph> kept = ReadKept(opened, key.value(), std::move(fd));
  if (kept)
    return std::move(*kept);
  HPD_TRY_ASSIGN(hprof::HeapGraph heap, LoadFromDump(opened));
  if (!opened->keep_index)
    return heap;
  if (!heap.census.damage.empty()) {
    Note(opened, kNotKept, "it is damaged");
    return heap;
  }
  const Status written = WriteKept(*opened, key.value(), heap);
  if (!written.ok()) {
    Note(opened, kNotKept, written.message());
    return heap;
  }
  kept = ReadKept(opened, key.value(), FindKept(opened));
  return kept ? std::move(*kept) : std::move(heap);
}

}  // namespace heapprofd
