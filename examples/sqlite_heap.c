// SQLite as a heap of its own, through its memory methods.
//
// The methods wrap those that SQLite would have used (over malloc), so each inner call is
// declared as nested: the bytes are in "org.sqlite" and not in malloc's heap. Sizes are
// what SQLite accounts for, so the heap's live bytes equal sqlite3_memory_used().
#include <sqlite3.h>
#include <stdio.h>

#include <heapprofd/heap_profile.h>

static uint32_t sqlite_heap;
static sqlite3_mem_methods inner;

static void report(void* block) {
  if (block != NULL)
    AHeapProfile_reportAllocation(sqlite_heap, (uintptr_t)block,
                                  (uint64_t)inner.xSize(block));
}

static void* heap_malloc(int size) {
  const uint32_t scope = heapprofd_nested_begin(sqlite_heap);
  void* block = inner.xMalloc(size);
  heapprofd_nested_end(scope);
  report(block);
  return block;
}

static void heap_free(void* block) {
  AHeapProfile_reportFree(sqlite_heap, (uintptr_t)block);
  inner.xFree(block);
}

static void* heap_realloc(void* block, int size) {
  const uint64_t old_size = (uint64_t)inner.xSize(block);
  // Before the block can be another thread's.
  AHeapProfile_reportFree(sqlite_heap, (uintptr_t)block);
  const uint32_t scope = heapprofd_nested_begin(sqlite_heap);
  void* moved = inner.xRealloc(block, size);
  heapprofd_nested_end(scope);
  if (moved == NULL)
    AHeapProfile_reportAllocation(sqlite_heap, (uintptr_t)block, old_size);
  report(moved);
  return moved;
}

static int profile_sqlite(void) {
  sqlite_heap = AHeapProfile_registerHeap(AHeapInfo_create("org.sqlite"));
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &inner) != SQLITE_OK)
    return SQLITE_ERROR;
  sqlite3_mem_methods methods = inner;
  methods.xMalloc = heap_malloc;
  methods.xFree = heap_free;
  methods.xRealloc = heap_realloc;
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

int main(void) {
  sqlite3* database = NULL;
  if (profile_sqlite() != SQLITE_OK || sqlite3_open(":memory:", &database) != SQLITE_OK)
    return 1;
  char* error = NULL;
  const char* script =
      "create table t(a integer primary key, b text);"
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) "
      "insert into t select i, hex(randomblob(20)) from n;"
      "create index i on t(b);"
      "delete from t where a % 3 = 0;";
  if (sqlite3_exec(database, script, NULL, NULL, &error) != SQLITE_OK) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  printf("live %lld peak %lld\n", (long long)sqlite3_memory_used(),
         (long long)sqlite3_memory_highwater(0));
  return 0;  // with the database open: its memory is what the profile shows
}
