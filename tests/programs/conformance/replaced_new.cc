// A program's own operator new and delete are the ones that it and its libraries call
// ([replacement.functions]), whatever is preloaded. Speaks as new_rules does.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <string>

namespace {
std::atomic<int> g_news;
std::atomic<int> g_deletes;
}  // namespace

void* operator new(size_t size) {
  ++g_news;
  return malloc(size);
}

void operator delete(void* block) noexcept {
  ++g_deletes;
  free(block);
}

void operator delete(void* block, size_t) noexcept {
  ++g_deletes;
  free(block);
}

int main(int argc, char** argv) {
  static char buffer[16];
  setvbuf(stdin, buffer, _IOFBF, sizeof(buffer));
  dprintf(STDOUT_FILENO, "ready\n");
  for (int rounds = argc > 1 ? atoi(argv[1]) : 0; rounds > 0; --rounds) {
    if (getchar() == EOF)
      break;
    g_news = g_deletes = 0;
    {
      int* volatile number = new int(3);
      delete number;
      volatile size_t length = 100;
      std::string text(length, 'x');  // allocates within libstdc++
      text += text;
    }
    dprintf(STDOUT_FILENO, "news %d, deletes %d\ndone\n", g_news.load(),
            g_deletes.load());
  }
  return 0;
}
