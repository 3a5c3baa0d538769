// Has a plugin allocate 1000 blocks of 1000 bytes, which it keeps, and free 500 blocks of
// 2000 bytes of the program's own. The plugin, or the allocator, is got in a way that leads
// past interposed symbols. Usage: ways_past WAY PLUGIN [wait], where WAY is
//   deepbind   dlopen with RTLD_DEEPBIND, lazily
//   now        the same, bound at once
//   handle     dlsym with a handle of libc: this program does the plugin's work
//   apart      as deepbind, and the program frees its blocks itself
//   namespace  dlmopen, likewise
//   plain      dlopen
// With "wait" it says "ready" and reads a line before it opens anything, and says "opened"
// and "done" and reads lines when it has opened the plugin and when it has done its work.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kKept = 1000, kKeptSize = 1000, kFreed = 500, kFreedSize = 2000 };

static void* kept[kKept];
static void* freed[kFreed];

static void* (*keeps)(size_t);
static void (*frees)(void*);
static void* (*libc_malloc)(size_t);
static void (*libc_free)(void*);

__attribute__((noinline)) static void* keep_by_handle(size_t size) {
  void* block = libc_malloc(size);
  __asm__ volatile("" ::"r"(block) : "memory");
  return block;
}

__attribute__((noinline)) static void free_by_handle(void* block) {
  libc_free(block);
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void* host_allocates(size_t size) {
  void* block = malloc(size);
  __asm__ volatile("" ::"r"(block) : "memory");
  return block;
}

static void* open_plugin(const char* way, const char* plugin) {
  if (strcmp(way, "deepbind") == 0 || strcmp(way, "apart") == 0)
    return dlopen(plugin, RTLD_LAZY | RTLD_DEEPBIND);
  if (strcmp(way, "now") == 0)
    return dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND);
  if (strcmp(way, "namespace") == 0)
    return dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW);
  return dlopen(plugin, RTLD_NOW);
}

static void say(int argc, const char* word) {
  if (argc < 4)
    return;
  puts(word);
  fflush(stdout);
  while (getchar() != '\n') {
  }
}

int main(int argc, char** argv) {
  if (argc < 3)
    return 2;
  say(argc, "ready");
  if (strcmp(argv[1], "handle") == 0) {
    void* libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_NOW);
    libc_malloc = (void* (*)(size_t))dlsym(libc, "malloc");
    libc_free = (void (*)(void*))dlsym(libc, "free");
    keeps = keep_by_handle;
    frees = free_by_handle;
  } else {
    void* plugin = open_plugin(argv[1], argv[2]);
    if (plugin == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    keeps = (void* (*)(size_t))dlsym(plugin, "plugin_keeps");
    frees = (void (*)(void*))dlsym(plugin, "plugin_frees");
  }
  if (strcmp(argv[1], "namespace") == 0 || strcmp(argv[1], "apart") == 0)
    frees = free;  // another allocator knows nothing of these
  say(argc, "opened");
  for (int i = 0; i < kKept; ++i)
    kept[i] = keeps(kKeptSize);
  for (int i = 0; i < kFreed; ++i)
    freed[i] = host_allocates(kFreedSize);
  for (int i = 0; i < kFreed; ++i)
    frees(freed[i]);
  say(argc, "done");
  return 7;
}
