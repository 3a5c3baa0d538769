#include "symbolize/module_symbolizer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "base/text.h"
#include "symbolize/elf_identity.h"
#include "symbolize/elf_symbolizer.h"
#include "symbolize/file_requests.h"
#include "symbolize/worker_pool.h"

namespace heapprofd {
namespace {

std::string Describe(const std::string& build_id) {
  return build_id.empty() ? "no Build ID" : "Build ID: " + HexEncode(build_id);
}

// Files of other users may claim any build id: what they hold is not kept for later runs.
bool IsTrusted(int fd) {
  struct stat status {};

  return fstat(fd, &status) == 0 && (status.st_uid == 0 || status.st_uid == geteuid());
}

std::string StrippedMessage(const ModuleRequest& request) {
  std::string message = request.path + " (" + Describe(request.build_id) +
                        ") has no symbols for some of its functions: it is stripped; "
                        "install its debug symbols (-dbgsym package)";
  if (!request.build_id.empty())
    message +=
        ", set DEBUGINFOD_URLS, or name a directory that has them in "
        "PERFETTO_BINARY_PATH";
  return message;
}

// Perfetto's formula, which needs no offset of the symbol file: 0 when the recorded bias
// is large enough.
uint64_t BiasCorrection(const CodeSegment& code, const ModuleRequest::Address& address) {
  const auto align_down = [&](uint64_t value) { return value - value % code.alignment; };
  const auto real_bias =
      static_cast<int64_t>(align_down(code.address) - align_down(address.image_offset));
  const auto recorded_bias = static_cast<int64_t>(address.load_bias);
  return real_bias > recorded_bias ? static_cast<uint64_t>(real_bias) - address.load_bias
                                   : 0;
}

}  // namespace

uint64_t AddressInFile(const ElfIdentity& file, const ModuleRequest::Address& address) {
  const std::vector<CodeSegment>& segments = file.code.all();
  if (segments.empty())
    return address.rel_pc;
  // Tools that strip a file may move its segments: then the offsets tell nothing.
  const bool has_its_offsets =
      file.has_code && std::ranges::find(segments, address.load_bias,
                                         &CodeSegment::load_bias) != segments.end();
  const uint64_t offset = address.rel_pc - address.load_bias;
  if (const CodeSegment* segment = has_its_offsets ? file.code.Holding(offset) : nullptr)
    return offset + segment->load_bias();
  return address.rel_pc + BiasCorrection(segments.front(), address);
}

ModuleAnswer AnswerOfDeadWorker(const std::string& path, const std::string& cause) {
  ModuleAnswer answer;
  answer.reason = NoSymbolsReason::kWorkerDied;
  answer.error = "cannot symbolize " + path + ": " + cause +
                 "; the file is damaged, or was changed while it was read";
  return answer;
}

std::string ModuleAnswer::Encode() const {
  std::string bytes;
  AppendNumber(static_cast<uint8_t>(reason), bytes);
  AppendNumber(static_cast<uint8_t>(has_debug_info), bytes);
  AppendNumber(static_cast<uint8_t>(from_cache), bytes);
  AppendNumber(static_cast<uint32_t>(error.size()), bytes);
  bytes += error;
  AppendNumber(static_cast<uint32_t>(keys.size()), bytes);
  for (const uint64_t key : keys)
    AppendNumber(key, bytes);
  lines.EncodeTo(bytes);
  return bytes;
}

std::optional<ModuleAnswer> ModuleAnswer::Decode(std::string bytes) {
  ByteReader reader(bytes);
  ModuleAnswer answer;
  const auto reason = reader.Read<uint8_t>();
  answer.has_debug_info = reader.Read<uint8_t>() != 0;
  answer.from_cache = reader.Read<uint8_t>() != 0;
  answer.error = reader.ReadBytes(reader.Read<uint32_t>());
  const auto key_count = reader.Read<uint32_t>();
  for (uint32_t i = 0; i < key_count && reader.ok(); ++i)
    answer.keys.push_back(reader.Read<uint64_t>());
  if (!reader.ok())
    return std::nullopt;
  const size_t start = bytes.size() - reader.left();
  auto lines = SymbolAnswers::Decode(std::move(bytes), start);
  if (!lines || reason > static_cast<uint8_t>(NoSymbolsReason::kWorkerDied))
    return std::nullopt;
  answer.reason = static_cast<NoSymbolsReason>(reason);
  answer.lines = std::move(*lines);
  return answer;
}

std::string ModuleSymbolizer::CacheName(const ModuleRequest& request) const {
  if (request.build_id.empty())
    return "";
  return "symbols-" + HexEncode(request.build_id) +
         (options_.backend == SymbolBackend::kLibdw ? "-libdw" : "-llvm");
}

ModuleAnswer ModuleSymbolizer::Symbolize(const ModuleRequest& request) {
  ModuleAnswer answer;
  cached_ = {};
  if (const std::string name = CacheName(request); !name.empty()) {
    if (auto table = SymbolAnswers::Decode(cache_.Load(name).value_or("")))
      cached_ = std::move(*table);
  }
  // Only the process's own file is sure to have the load bias that the profile states.
  std::vector<uint64_t> addresses;
  for (const ModuleRequest::Address& address : request.addresses)
    addresses.push_back(address.rel_pc);
  if (request.open && AnswerFromCache(addresses, &answer))
    return answer;
  const auto source = FindSource(request, &answer);
  if (!source)
    return answer;
  if (!source->is_own) {
    const auto identity = IdentifyElf(source->fd);
    for (size_t i = 0; identity && i < addresses.size(); ++i)
      addresses[i] = AddressInFile(*identity, request.addresses[i]);
    answer.keys = addresses;
    if (AnswerFromCache(addresses, &answer))
      return answer;
  }
  AnswerFromFile(request, *source, addresses, &answer);
  return answer;
}

// True when the cache knows all of them.
bool ModuleSymbolizer::AnswerFromCache(const std::vector<uint64_t>& addresses,
                                       ModuleAnswer* answer) const {
  const auto is_known = [&](uint64_t address) {
    return cached_.Find(address).has_value();
  };
  if (!std::ranges::all_of(addresses, is_known))
    return false;
  answer->lines = cached_.Subset(addresses);
  answer->has_debug_info = true;  // see AnswerFromFile
  answer->from_cache = true;
  return true;
}

std::optional<ModuleSymbolizer::Source> ModuleSymbolizer::FindSource(
    const ModuleRequest& request, ModuleAnswer* answer) {
  if (request.open) {
    if (ScopedFd fd = request.open(); fd.valid()) {
      const auto identity = IdentifyElf(fd.get());
      if (identity && identity->build_id == request.build_id) {
        source_ = std::move(fd);
        return Source{source_.get(), request.path, true};
      }
      answer->reason =
          identity ? NoSymbolsReason::kBuildIdMismatch : NoSymbolsReason::kUnreadable;
    }
  }
  std::vector<RejectedFile> rejected;
  std::optional<FoundFile> found;
  if (!request.build_id.empty() && request.path.starts_with('/') &&
      answer->reason == NoSymbolsReason::kNone)
    found =
        OpenIfMatching(request.path, request.build_id, WantedSymbols::kAny, &rejected);
  if (!found)
    found = finder_->Find(request.path, request.build_id, WantedSymbols::kAny, &rejected);
  if (found) {
    answer->reason = NoSymbolsReason::kNone;
    source_ = std::move(found->fd);
    return Source{source_.get(), found->path, false};
  }
  if (answer->reason == NoSymbolsReason::kNone)
    answer->reason = NoSymbolsReason::kNotFound;
  for (const RejectedFile& file : rejected) {
    if (file.reason == RejectedFile::Reason::kBuildIdMismatch)
      answer->reason = NoSymbolsReason::kBuildIdMismatch;
  }
  answer->error =
      NotFoundMessage(request, rejected, answer->reason != NoSymbolsReason::kNotFound);
  return std::nullopt;
}

// The first part is what users of heapprofd know and search for.
std::string ModuleSymbolizer::NotFoundMessage(const ModuleRequest& request,
                                              const std::vector<RejectedFile>& rejected,
                                              bool is_another) const {
  std::string message =
      "Could not find " + request.path + " (" + Describe(request.build_id) + "): ";
  if (request.build_id.empty())
    return message +
           (is_another ? "the file that is there is not the one that ran"
                       : "the file is gone") +
           ", and without a build id no other can stand in; build it with "
           "-Wl,--build-id";
  std::string causes;
  for (const RejectedFile& file : rejected) {
    causes += file.path;
    causes += file.reason == RejectedFile::Reason::kNotElf
                  ? " is no ELF file, "
                  : " is another build (" + Describe(file.build_id) + "), ";
  }
  if (!causes.empty())
    message += causes.substr(0, causes.size() - 2) + "; ";
  const std::string base(FileName(request.path));
  return message +
         (finder_->has_roots()
              ? "put the file that ran as " + base +
                    " into a directory of PERFETTO_BINARY_PATH"
              : "set PERFETTO_BINARY_PATH to a directory that has the file "
                "that ran as " +
                    base) +
         " (readelf -n shows a file's Build ID)";
}

// Another worker, or another run, may have added to the file since it was loaded.
void ModuleSymbolizer::Keep(const std::string& name) const {
  const ScopedFd lock = cache_.Lock();
  if (!lock.valid())
    return;
  std::string contents;
  if (auto others = SymbolAnswers::Decode(cache_.Load(name).value_or(""))) {
    others->Merge(cached_);
    others->EncodeTo(contents);
  } else {
    cached_.EncodeTo(contents);
  }
  cache_.Store(name, contents);
}

ModuleAnswer ModuleSymbolizer::Parse(const ModuleFile& file,
                                     DebugFiles debug_files,
                                     const std::vector<uint64_t>& addresses) const {
  ModuleAnswer answer;
  auto opened = ElfSymbolizer::Open(file, std::move(debug_files));
  if (!opened.ok()) {
    answer.reason = NoSymbolsReason::kUnreadable;
    answer.error = opened.status().message();
    return answer;
  }
  ElfSymbolizer& symbolizer = opened.value();
  if (options_.backend == SymbolBackend::kLlvmSymbolizer)
    symbolizer.UseLlvmSymbolizer(options_.llvm_symbolizer, file);
  if (const Status status = symbolizer.Symbolize(addresses, answer.lines); !status.ok()) {
    answer.reason = NoSymbolsReason::kWorkerDied;
    answer.error = "cannot symbolize " + file.path + ": " + status.message();
  }
  answer.has_debug_info = symbolizer.has_debug_info();
  return answer;
}

ModuleAnswer ModuleSymbolizer::ParseWithoutRights(
    const ModuleFile& file,
    DebugFiles debug_files,
    const std::vector<uint64_t>& addresses) const {
  std::optional<ModuleAnswer> answer;
  std::string cause = "its worker returned nonsense";
  const FileRequests requests;
  const auto parse = [&](size_t) {
    return Parse(file, std::move(debug_files), addresses).Encode();
  };
  RunInWorkers(
      1,
      [&](size_t task) {
        requests.InstallInParser();
        return parse(task);
      },
      [&](size_t, Result<std::string> result) {
        if (result.ok())
          answer = ModuleAnswer::Decode(std::move(result).value());
        else
          cause = result.status().message();
      },
      {.workers = 1,
       .rights = WorkerRights::kNone,
       .kept_fds = {file.fd, debug_files.debug.get(), debug_files.shared.get(),
                    requests.parser_fd()},
       .request_fd = requests.server_fd(),
       .on_request = [&] { requests.Serve(); }});
  return answer ? std::move(*answer) : AnswerOfDeadWorker(file.path, cause);
}

void ModuleSymbolizer::AnswerFromFile(const ModuleRequest& request,
                                      const Source& source,
                                      const std::vector<uint64_t>& addresses,
                                      ModuleAnswer* answer) {
  const ModuleFile file{
      .fd = source.fd, .path = source.path, .build_id = request.build_id};
  DebugFiles debug_files = FindDebugFiles(file, options_.debug_path, finder_);
  std::vector<uint64_t> missing;
  for (const uint64_t address : addresses) {
    if (!cached_.Find(address))
      missing.push_back(address);
  }
  ModuleAnswer parsed = options_.backend == SymbolBackend::kLlvmSymbolizer
                            ? Parse(file, std::move(debug_files), missing)
                            : ParseWithoutRights(file, std::move(debug_files), missing);
  if (parsed.reason != NoSymbolsReason::kNone) {
    answer->reason = parsed.reason;
    answer->error = std::move(parsed.error);
    return;
  }
  const bool nothing_was_cached = cached_.size() == 0;
  if (nothing_was_cached)
    cached_ = std::move(parsed.lines);
  else
    cached_.Merge(parsed.lines);
  for (const uint64_t address : addresses) {
    const auto lines = cached_.Find(address);
    if (!lines || lines->empty())
      answer->reason = NoSymbolsReason::kNoSymbols;
  }
  if (answer->reason == NoSymbolsReason::kNoSymbols)
    answer->error = StrippedMessage(request);
  answer->has_debug_info = parsed.has_debug_info;
  // Without debug information there is little to save, and some may be installed later.
  const std::string name = CacheName(request);
  if (answer->has_debug_info && !name.empty() && IsTrusted(source.fd))
    Keep(name);
  answer->lines = nothing_was_cached ? std::move(cached_) : cached_.Subset(addresses);
}

}  // namespace heapprofd
