/* Extensions that do something wrong, for test_stable_abi_refusals.py: one for each value of CASE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#define VERSION(minor) ((uint64_t)2 << 56 | (uint64_t)(minor) << 48)

typedef uint64_t StableIValue;
typedef void* Library;
int32_t aoti_torch_library_init_def(const char*, const char*, uint32_t, Library*);
int32_t aoti_torch_library_init_fragment(const char*, const char*, uint32_t, Library*);
int32_t aoti_torch_library_init_impl(const char*, const char*, const char*, uint32_t, Library*);
int32_t aoti_torch_library_def(Library, const char*);
int32_t torch_library_impl(Library, const char*, void (*)(StableIValue*, uint64_t, uint64_t),
                           uint64_t);

static void kernel(StableIValue* stack, uint64_t inputs, uint64_t outputs) {
  (void)inputs;
  if (outputs) stack[0] = 7;
}

#if CASE == MISSING
int32_t torch_of_the_future(void);
int32_t call_it(void) { return torch_of_the_future(); }
#elif CASE == CPLUSPLUS
/* c10::Error::what() const, and more of its namespaces. */
void _ZNK3c105Error4whatEv(void);
void call_it(void) { _ZNK3c105Error4whatEv(); }
#endif

__attribute__((constructor)) static void start(void) {
  Library library = NULL, second = NULL;
#if CASE == GOOD
  aoti_torch_library_init_def("stable_good", "good.c", 3, &library);
  aoti_torch_library_def(library, "seven(Tensor x) -> int");
  aoti_torch_library_init_impl("stable_good", "CPU", "good.c", 4, &second);
  torch_library_impl(second, "seven", &kernel, VERSION(10));
#elif CASE == TWICE
  aoti_torch_library_init_fragment("stable_twice", "a.c", 1, &library);
  aoti_torch_library_def(library, "f(Tensor x) -> Tensor");
  aoti_torch_library_init_fragment("stable_twice", "b.c", 2, &second);
  aoti_torch_library_def(second, "f(Tensor x, int n) -> Tensor");
#elif CASE == SECOND_DEF
  aoti_torch_library_init_def("stable_def", "a.c", 1, &library);
  aoti_torch_library_init_def("stable_def", "b.c", 2, &second);
#elif CASE == SCHEMA
  aoti_torch_library_init_fragment("stable_schema", "a.c", 1, &library);
  aoti_torch_library_def(library, "f(Tensr x) -> Tensor");
#elif CASE == KEY
  aoti_torch_library_init_impl("stable_key", "Abacus", "a.c", 1, &library);
#elif CASE == OLD
  aoti_torch_library_init_fragment("stable_old", "a.c", 1, &library);
  aoti_torch_library_def(library, "f(Tensor x) -> Tensor");
  aoti_torch_library_init_impl("stable_old", "CPU", "a.c", 2, &second);
  torch_library_impl(second, "f", &kernel, VERSION(8));
#elif CASE == OWN
  aoti_torch_library_init_impl("aten", "CPU", "a.c", 1, &library);
  torch_library_impl(library, "add.Tensor", &kernel, VERSION(10));
#elif CASE == KERNELS
  aoti_torch_library_init_fragment("stable_kernels", "a.c", 1, &library);
  aoti_torch_library_def(library, "f(Tensor x) -> int");
  aoti_torch_library_init_impl("stable_kernels", "CPU", "a.c", 2, &second);
  torch_library_impl(second, "f", &kernel, VERSION(10));
  torch_library_impl(second, "f", &kernel, VERSION(10));
#endif
  (void)kernel;
}

#ifdef MODULE
/* The start of a module of Python without functions. */
typedef struct PyObject PyObject;
struct PyModuleDef {
  struct {
    intptr_t count;
    void* type;
    void *init, *index, *copy;
  } base;
  const char *name, *doc;
  intptr_t size;
  void *methods, *slots, *traverse, *clear, *release;
};
PyObject* PyModule_Create2(struct PyModuleDef*, int);
static struct PyModuleDef definition = {{1, 0, 0, 0, 0}, "stable_module", 0, -1, 0, 0, 0, 0, 0};
__attribute__((visibility("default"))) PyObject* PyInit_stable_module(void) {
  return PyModule_Create2(&definition, 1013);
}
#endif
