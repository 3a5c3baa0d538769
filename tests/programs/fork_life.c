// Forked children that go on without exec; the argument says how.
//   threads: ten children, in each of which the first thread and six others keep 300
//            blocks of 1000 bytes (`thread_block`) at the same time
//   again:   children whose threads fork children of their own meanwhile
//   orphan:  a child that begins to allocate when its parent is gone for long: 1000
//            blocks of 1000 bytes (`orphan_block`)
//   going:   a child that allocates until standard input ends
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kChildren = 10, kThreads = 6, kBlocks = 300 };

__attribute__((noinline)) void* thread_block(void) {
  void* volatile block = calloc(1, 1000);
  return block;
}

__attribute__((noinline)) void* orphan_block(void) {
  void* volatile block = calloc(1, 1000);
  return block;
}

static pthread_barrier_t g_start;

static void* keep_blocks(void* unused) {
  pthread_barrier_wait(&g_start);
  for (int i = 0; i < kBlocks; ++i) {
    void* volatile keep = thread_block();
    (void)keep;
  }
  return unused;
}

static void* fork_again(void* unused) {
  pthread_barrier_wait(&g_start);
  for (int i = 0; i < 5; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      void* volatile keep = thread_block();
      (void)keep;
      _exit(0);
    }
    int status = 1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
      _exit(2);
  }
  return unused;
}

static void be_child(void* (*last_thread)(void*)) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&g_start, NULL, kThreads + 1);
  for (int i = 0; i < kThreads; ++i)
    pthread_create(&threads[i], NULL, i + 1 < kThreads ? keep_blocks : last_thread, NULL);
  keep_blocks(NULL);
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  _exit(0);
}

static int run_children(void* (*last_thread)(void*)) {
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = fork();
    if (pid == 0)
      be_child(last_thread);
    int status = 1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
      return 1;
  }
  puts("children ok");
  return 0;
}

// The child writes to standard output when it is done; whoever reads that can wait for
// it.
static int leave_orphan(void) {
  int to_child[2];
  if (pipe(to_child) != 0)
    return 1;
  if (fork() != 0)
    return 0;
  close(to_child[1]);
  struct pollfd end = {.fd = to_child[0], .events = POLLIN};
  poll(&end, 1, -1);   // the parent has ended
  poll(NULL, 0, 500);  // and everybody has noticed
  for (int i = 0; i < 1000; ++i) {
    void* volatile keep = orphan_block();
    (void)keep;
  }
  puts("orphan ok");
  return 0;
}

static int let_child_go_on(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    struct pollfd end = {.fd = 0, .events = POLLIN};
    while (poll(&end, 1, 1) == 0)
      free(thread_block());
    _exit(0);
  }
  int status = 1;
  return waitpid(pid, &status, 0) != pid || status != 0;
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "threads";
  if (strcmp(way, "orphan") == 0)
    return leave_orphan();
  if (strcmp(way, "going") == 0)
    return let_child_go_on();
  return run_children(strcmp(way, "again") == 0 ? fork_again : keep_blocks);
}
