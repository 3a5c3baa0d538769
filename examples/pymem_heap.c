// A Python module that makes CPython's allocators heaps of their own: `import pymem_heap`
// installs hooks over the object and the memory domain (PyMem_SetAllocator).
//
//   python.object   PyObject_Malloc: objects
//   python.mem      PyMem_Malloc: the insides of lists, dicts and the like
//
// What CPython takes from malloc for them is declared as nested. pymem_heap.push(key,
// value) and pop() set labels from Python.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <heapprofd/heap_profile.h>

struct domain {
  PyMemAllocatorDomain id;
  const char* heap_name;
  uint32_t heap;
  PyMemAllocatorEx inner;
};

static struct domain domains[] = {
    {.id = PYMEM_DOMAIN_OBJ, .heap_name = "python.object"},
    {.id = PYMEM_DOMAIN_MEM, .heap_name = "python.mem"},
};

static void* hooked_malloc(void* context, size_t size) {
  struct domain* domain = context;
  const uint32_t scope = heapprofd_nested_begin(domain->heap);
  void* block = domain->inner.malloc(domain->inner.ctx, size);
  heapprofd_nested_end(scope);
  if (block != NULL)
    AHeapProfile_reportAllocation(domain->heap, (uintptr_t)block, size);
  return block;
}

static void* hooked_calloc(void* context, size_t count, size_t size) {
  struct domain* domain = context;
  const uint32_t scope = heapprofd_nested_begin(domain->heap);
  void* block = domain->inner.calloc(domain->inner.ctx, count, size);
  heapprofd_nested_end(scope);
  if (block != NULL)
    AHeapProfile_reportAllocation(domain->heap, (uintptr_t)block, count * size);
  return block;
}

// A failed realloc leaves the block alive and unreported, since its size is not known
// here; a program seldom goes on after it.
static void* hooked_realloc(void* context, void* block, size_t size) {
  struct domain* domain = context;
  AHeapProfile_reportFree(domain->heap, (uintptr_t)block);
  const uint32_t scope = heapprofd_nested_begin(domain->heap);
  void* moved = domain->inner.realloc(domain->inner.ctx, block, size);
  heapprofd_nested_end(scope);
  if (moved != NULL)
    AHeapProfile_reportAllocation(domain->heap, (uintptr_t)moved, size);
  return moved;
}

static void hooked_free(void* context, void* block) {
  struct domain* domain = context;
  AHeapProfile_reportFree(domain->heap, (uintptr_t)block);
  domain->inner.free(domain->inner.ctx, block);
}

static void install(struct domain* domain) {
  domain->heap = AHeapProfile_registerHeap(AHeapInfo_create(domain->heap_name));
  PyMem_GetAllocator(domain->id, &domain->inner);
  PyMemAllocatorEx hooks = {.ctx = domain,
                            .malloc = hooked_malloc,
                            .calloc = hooked_calloc,
                            .realloc = hooked_realloc,
                            .free = hooked_free};
  PyMem_SetAllocator(domain->id, &hooks);
}

static PyObject* push(PyObject* self, PyObject* arguments) {
  (void)self;
  const char* key = NULL;
  const char* value = NULL;
  if (!PyArg_ParseTuple(arguments, "ss", &key, &value))
    return NULL;
  heapprofd_label_push(key, value);
  Py_RETURN_NONE;
}

static PyObject* pop(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  heapprofd_label_pop();
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"push", push, METH_VARARGS, "push(key, value): label the allocations that follow."},
    {"pop", pop, METH_NOARGS, "Ends the label that was pushed last."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "pymem_heap",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_pymem_heap(void) {
  for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); ++i)
    install(&domains[i]);
  return PyModule_Create(&module);
}
