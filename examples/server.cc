// A server as small as can be, with what heaps have: a peak while it starts, a cache that has a bound, much that lives for
// one request only, and a leak. docs/first-profile.md and the pages after it look at it.
#include <chrono>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

constexpr int kProducts = 40000;
constexpr int kRequestsPerRound = 400;
constexpr size_t kMaxCached = 300;

struct Product {
  std::string name;
  std::string description;
};

// Never destroyed, as is usual in servers.
static auto& g_audit_log =
    *new std::vector<std::string>();  // nobody ever reads or empties it
static auto& g_cache = *new std::unordered_map<int, std::string>();

static std::string ReadCatalogueFile() {
  std::string text;
  for (int i = 0; i < kProducts; ++i)
    text += "product " + std::to_string(i) + "\tas good as " + std::to_string(i * 7) +
            " others of its kind\n";
  return text;
}

// The text and its lines are there beside the products: that is the peak.
static std::vector<Product> LoadCatalogue() {
  const std::string text = ReadCatalogueFile();
  std::list<std::string> lines;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    lines.push_back(text.substr(begin, text.find('\n', begin) - begin));
  std::vector<Product> products;
  for (const std::string& line : lines)
    products.push_back(
        {line.substr(0, line.find('\t')), line.substr(line.find('\t') + 1)});
  return products;
}

static std::string RenderPage(const Product& product) {
  std::string page = "<html><h1>" + product.name + "</h1><p>" + product.description;
  for (int i = 0; i < 20; ++i)
    page += "<li>" + product.name + " and " + std::to_string(i) + " more";
  return page;
}

static void RecordVisit(int user, const Product& product) {
  g_audit_log.push_back("user " + std::to_string(user) + " looked at " + product.name +
                        ": " + product.description);
}

static void HandleRequest(const std::vector<Product>& products, int request) {
  const int number = request * 7919 % kProducts;
  if (g_cache.size() > kMaxCached)
    g_cache.erase(g_cache.begin());
  g_cache[number] = RenderPage(products[static_cast<size_t>(number)]);
  RecordVisit(request % 100, products[static_cast<size_t>(number)]);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 50;
  const auto& products = *new std::vector<Product>(LoadCatalogue());
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kRequestsPerRound; ++i)
      HandleRequest(products, round * kRequestsPerRound + i);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}
