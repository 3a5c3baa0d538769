// 1,000 allocations of known size in main, one in a constructor: 1003 calls with
// libstdc++'s own.
#include <cstdlib>
#include <string>
#include <vector>

static std::string text(1000, 'x');

int main() {
  std::vector<void*> blocks;
  blocks.reserve(1000);
  for (size_t i = 0; i < 1000; ++i)
    blocks.push_back(malloc(100 + i));
  return blocks.size() == 1000 && text.size() == 1000 ? 0 : 1;
}
