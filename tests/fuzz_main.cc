// Runs a fuzz target where libFuzzer is not: over the committed inputs, and over changes
// of them that chance makes, always the same ones. It knows nothing of what they reach:
// looking for more is what tools/fuzz is for.
//
//   TARGET LIST INPUT [RUNS [SECONDS]]
//
// LIST: a file with the paths of the inputs, separated by commas. INPUT: a file that has
// what the target is given, to be looked at when that was its end.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
using Random = std::minstd_rand;

constexpr size_t kMaxLength = 4096;  // of changed inputs
constexpr unsigned kPatienceS = 60;  // for one input

// Some value below `end`, which is not 0.
size_t Below(size_t end, Random& random) {
  return random() % end;
}

Bytes ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fprintf(stderr, "cannot read %s\n", path.c_str());
    exit(2);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<Bytes> ReadInputs(const std::string& list) {
  std::vector<Bytes> inputs;
  const Bytes names = ReadAll(list);
  std::istringstream paths(std::string(names.begin(), names.end()));
  for (std::string path; std::getline(paths, path, ',');)
    inputs.push_back(ReadAll(path));
  if (inputs.empty())
    inputs.emplace_back();
  return inputs;
}

// What the target is given lies in a file, which is there when the target is no more.
class InputFile {
 public:
  explicit InputFile(const char* path) {
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
      perror(path);
      exit(2);
    }
    fd_ = fd;
  }

  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  ~InputFile() { close(fd_); }

  void Run(const Bytes& input) const {
    if (ftruncate(fd_, 0) != 0 || pwrite(fd_, input.data(), input.size(), 0) !=
                                      static_cast<ssize_t>(input.size())) {
      perror("cannot keep the input");
      exit(2);
    }
    // Of its own size, so that the sanitizer sees who reads behind it.
    const Bytes exact(input);
    alarm(kPatienceS);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    alarm(0);
  }

 private:
  int fd_;
};

void SetNumber(Bytes& bytes, Random& random) {
  constexpr std::array<uint64_t, 10> kNumbers = {
      0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX};
  const uint64_t number = kNumbers[Below(kNumbers.size(), random)];
  const size_t width = size_t{1} << Below(4, random);
  const bool is_big_endian = Below(2, random) == 0;
  if (bytes.size() < width)
    return;
  const size_t at = Below(bytes.size() - width + 1, random);
  for (size_t i = 0; i < width; ++i)
    bytes[at + (is_big_endian ? width - 1 - i : i)] =
        static_cast<uint8_t>(number >> (8 * i));
}

// A part of `other` in place of a part of `bytes`, of which either may be empty.
void Splice(Bytes& bytes, const Bytes& other, Random& random) {
  const auto part = [&random](const Bytes& of) {
    const size_t begin = Below(of.size() + 1, random);
    return std::pair(begin, begin + Below(of.size() - begin + 1, random));
  };
  const auto [begin, end] = part(bytes);
  const auto [from, to] = part(other);
  Bytes result(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(begin));
  result.insert(result.end(), other.begin() + static_cast<ptrdiff_t>(from),
                other.begin() + static_cast<ptrdiff_t>(to));
  result.insert(result.end(), bytes.begin() + static_cast<ptrdiff_t>(end), bytes.end());
  bytes = std::move(result);
}

Bytes Changed(const std::vector<Bytes>& inputs, Random& random) {
  Bytes bytes = inputs[Below(inputs.size(), random)];
  for (size_t left = 1 + Below(6, random); left > 0; --left) {
    const size_t kind = Below(4, random);
    if (kind == 0)
      Splice(bytes, inputs[Below(inputs.size(), random)], random);
    else if (kind == 1)
      SetNumber(bytes, random);
    else if (!bytes.empty() && kind == 2)
      bytes[Below(bytes.size(), random)] ^= static_cast<uint8_t>(1u << Below(8, random));
    else if (!bytes.empty())
      bytes[Below(bytes.size(), random)] = static_cast<uint8_t>(Below(256, random));
    bytes.resize(std::min(bytes.size(), kMaxLength));
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s LIST INPUT [RUNS [SECONDS]]\n", argv[0]);
    return 2;
  }
  const std::vector<Bytes> inputs = ReadInputs(argv[1]);
  const InputFile file(argv[2]);
  const uint64_t runs = argc > 3 ? strtoull(argv[3], nullptr, 10) : 1000;
  const std::chrono::seconds seconds(argc > 4 ? strtoll(argv[4], nullptr, 10) : 5);
  for (const Bytes& input : inputs)
    file.Run(input);
  const auto end = std::chrono::steady_clock::now() + seconds;
  Random random(1);
  uint64_t done = 0;
  for (; done < runs && std::chrono::steady_clock::now() < end; ++done)
    file.Run(Changed(inputs, random));
  printf("%zu inputs, %llu changes of them\n", inputs.size(),
         static_cast<unsigned long long>(done));
  return 0;
}
