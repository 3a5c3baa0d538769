#include "hprof/inflate_members.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/quiet_thread.h"
#include "import/perfetto/inflate.h"

namespace heapprofd::hprof {
namespace {

// Members that follow each other, to be inflated by one thread.
struct Share {
  uint64_t begin;     // in the compressed file
  uint64_t end;       // of it
  uint64_t position;  // in the inflated file
  uint64_t bytes;     // there
};

constexpr size_t kGzipHeaderBytes = 10;
constexpr size_t kGzipTrailerBytes = 8;

// Ten bytes that could be in the middle of a member as well: who inflates it finds out.
bool MayBeHeader(const char* at) {
  const auto byte = [at](size_t i) { return static_cast<uint8_t>(at[i]); };
  constexpr uint8_t kUnusedFlags = 0xE0;
  constexpr uint8_t kLastSystem = 13;
  constexpr uint8_t kUnknownSystem = 255;
  return (byte(3) & kUnusedFlags) == 0 &&
         (byte(8) == 0 || byte(8) == 2 || byte(8) == 4) &&
         (byte(9) <= kLastSystem || byte(9) == kUnknownSystem);
}

// Where the next member seems to begin; at the end none.
uint64_t NextHeader(std::string_view compressed, uint64_t from) {
  constexpr std::string_view kGzip("\x1f\x8b\x08", 3);
  for (size_t at = compressed.find(kGzip, from); at != std::string_view::npos;
       at = compressed.find(kGzip, at + 1)) {
    if (compressed.size() - at < kGzipHeaderBytes)
      break;
    if (MayBeHeader(compressed.data() + at))
      return at;
  }
  return compressed.size();
}

// What the member that ends here says of its size.
uint32_t SizeBefore(std::string_view compressed, uint64_t end) {
  uint32_t size = 0;
  memcpy(&size, compressed.data() + end - sizeof(size), sizeof(size));
  return size;
}

// All that a file may inflate to.
std::vector<Share> SharesOf(std::string_view compressed, uint64_t share_bytes) {
  std::vector<Share> shares;
  InflationBudget budget;
  Share share{};
  uint64_t begin = 0;  // of a member
  while (begin < compressed.size()) {
    const uint64_t end =
        NextHeader(compressed, begin + kGzipHeaderBytes + kGzipTrailerBytes);
    if (end - begin < kGzipHeaderBytes + kGzipTrailerBytes)
      break;
    const uint32_t bytes = SizeBefore(compressed, end);
    share.bytes += bytes;
    share.end = end;
    if (!budget.Take(end - begin, bytes))
      break;
    if (end - share.begin >= share_bytes || end == compressed.size()) {
      shares.push_back(share);
      share = {end, end, share.position + share.bytes, 0};
    }
    begin = end;
  }
  return shares;
}

class MemberInflater {
 public:
  MemberInflater(std::string_view compressed, std::vector<Share> shares, int to)
      : compressed_(compressed), shares_(std::move(shares)), to_(to) {}

  // 0, or errno of writing.
  int Run(InflatedPart* part) {
    const size_t others =
        std::clamp<size_t>(std::thread::hardware_concurrency(), 1, shares_.size()) - 1;
    std::vector<pthread_t> threads;
    for (size_t i = 0; i < others; ++i) {
      pthread_t thread = {};
      if (!StartQuietThread([this] { Work(); }, &thread))
        break;
      threads.push_back(thread);
    }
    Work();
    for (const pthread_t thread : threads)
      pthread_join(thread, nullptr);
    const size_t done = std::min<size_t>(first_bad_, shares_.size());
    if (done > 0)
      *part = {shares_[done - 1].end,
               shares_[done - 1].position + shares_[done - 1].bytes};
    return error_;
  }

 private:
  void Work() {
    Tools tools{.whole = {}, .piece = std::string(kPieceBytes, '\0')};
    while (error_ == 0) {
      const size_t at = next_++;
      if (at >= std::min<size_t>(first_bad_, shares_.size()))
        return;
      if (Inflate(shares_[at], &tools))
        continue;
      size_t known = first_bad_;
      while (at < known && !first_bad_.compare_exchange_weak(known, at)) {
      }
    }
  }

  // What a thread works with.
  struct Tools {
    WholeInflater whole;
    std::string piece;  // of the inflated file; a member of HotSpot's as a whole
  };

  // How far a share is.
  struct Progress {
    std::string_view rest;  // of its bytes
    uint64_t done = 0;      // bytes inflated
  };

  // False: it is not what it seemed to be: whole members, one behind the other.
  bool Inflate(const Share& share, Tools* tools) {
    Progress at{.rest = compressed_.substr(share.begin, share.end - share.begin)};
    while (CompressionOf(at.rest) == Compression::kGzip) {
      const std::optional<Inflater::Progress> member =
          tools->whole.Inflate(at.rest, tools->piece);
      if (!(member ? Keep(*member, share, tools->piece, &at)
                   : InflatePieces(share, &tools->piece, &at)))
        return false;
    }
    return at.rest.empty() && at.done == share.bytes;
  }

  // A member that does not fit into the piece, or is damaged.
  bool InflatePieces(const Share& share, std::string* piece, Progress* at) {
    const std::unique_ptr<Inflater> member = Inflater::Create(Compression::kGzip);
    Inflater::Progress progress;
    while (!progress.is_end) {
      Result<Inflater::Progress> next = member->Inflate(at->rest, *piece);
      if (!next.ok())
        return false;
      progress = next.value();
      // The end may come with nothing: all had been taken, and the piece was full.
      if (progress.consumed + progress.produced == 0 && !progress.is_end)
        return false;
      if (!Keep(progress, share, *piece, at))
        return false;
    }
    return true;
  }

  // What the piece begins with is part of the share.
  bool Keep(const Inflater::Progress& progress,
            const Share& share,
            std::string_view piece,
            Progress* at) {
    if (progress.produced > share.bytes - at->done ||
        !Write(piece.substr(0, progress.produced), share.position + at->done))
      return false;
    at->rest.remove_prefix(progress.consumed);
    at->done += progress.produced;
    return true;
  }

  bool Write(std::string_view bytes, uint64_t position) {
    while (!bytes.empty()) {
      const ssize_t count = pwrite(to_, bytes.data(), std::min(bytes.size(), kWriteBytes),
                                   static_cast<off_t>(position));
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0) {
        error_ = count < 0 ? errno : EIO;
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(count));
      position += static_cast<uint64_t>(count);
    }
    return true;
  }

  static constexpr size_t kPieceBytes = size_t{1} << 20;
  // At once: on ext4 writes of 1 MiB sometimes took several times as long for each byte.
  static constexpr size_t kWriteBytes = size_t{256} << 10;

  const std::string_view compressed_;
  const std::vector<Share> shares_;
  const int to_;
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> first_bad_ = SIZE_MAX;  // of the shares
  std::atomic<int> error_ = 0;                // of writing
};

}  // namespace

int InflateMembers(std::string_view compressed,
                   int to,
                   InflatedPart* part,
                   uint64_t share_bytes) {
  std::vector<Share> shares = SharesOf(compressed, share_bytes);
  return shares.size() < 2 ? 0
                           : MemberInflater(compressed, std::move(shares), to).Run(part);
}

}  // namespace heapprofd::hprof
