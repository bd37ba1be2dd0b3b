/* The plug-in interface of Treadle, version 1: what a shared library from outside uses to add a
 * backend (a kind of device), kernels and operators. Plain C11, so that any compiler serves, and a
 * plug-in built today loads into later releases. C++ programs include treadle/plugin.hpp.
 *
 *   static treadle_status start(const treadle_api* api) {
 *     treadle_backend b = {.size = sizeof b, .name = "minimal", .allocate = &my_allocate, ...};
 *     treadle_device_type type;
 *     return api->register_backend(&b, &type);
 *   }
 *   static const treadle_plugin plugin = {sizeof plugin, TREADLE_PLUGIN_VERSION, "minimal", "1.0",
 *                                         &start};
 *   TREADLE_PLUGIN_EXPORT const treadle_plugin* treadle_plugin_entry(void) { return &plugin; }
 *
 * Rules that hold for everything below:
 *  - A function returns TREADLE_OK, or the kind of an error after set_error() was called with its
 *    text. Whichever side calls passes the error on: it becomes a Python exception.
 *  - No exception and no longjmp crosses the boundary (treadle/plugin.hpp sees to it).
 *  - Structures begin with their size, as the side that fills them knows it. Later versions add
 *    members at the end only; a member past `size` counts as zero.
 *  - Handles given to a plug-in as arguments are borrowed for the call; those it is given as
 *    results are its own, to be released. Texts and lists live as long as the call.
 *  - Everything may be called from any thread, unless it says otherwise.
 */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TREADLE_PLUGIN_H
#define TREADLE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TREADLE_PLUGIN_VERSION 1u
#define TREADLE_PLUGIN_EXPORT __attribute__((visibility("default")))

/* ---- status ---- */

/* The end of a call; an error's kind says which Python exception it is. */
typedef int32_t treadle_status;
enum {
  TREADLE_OK = 0,
  TREADLE_TYPE_ERROR = 1,
  TREADLE_VALUE_ERROR = 2,
  TREADLE_INDEX_ERROR = 3,
  TREADLE_RUNTIME_ERROR = 4,
  TREADLE_NOT_IMPLEMENTED = 5,
  TREADLE_OUT_OF_MEMORY = 6,
  TREADLE_LINALG_ERROR = 7,
  /* The device does not answer any more; what was in its memory is gone. */
  TREADLE_DEVICE_LOST = 8,
  /* Not an error: the callee leaves this call to Treadle (of pointwise, reduce, copies and kernels
   * only). */
  TREADLE_DECLINED = 100
};

/* ---- small types ---- */

typedef int32_t treadle_dtype;
enum {
  TREADLE_BOOL = 0,
  TREADLE_UINT8 = 1,
  TREADLE_UINT16 = 2,
  TREADLE_UINT32 = 3,
  TREADLE_UINT64 = 4,
  TREADLE_INT8 = 5,
  TREADLE_INT16 = 6,
  TREADLE_INT32 = 7,
  TREADLE_INT64 = 8,
  TREADLE_FLOAT16 = 9,
  TREADLE_BFLOAT16 = 10,
  TREADLE_FLOAT32 = 11,
  TREADLE_FLOAT64 = 12,
  TREADLE_COMPLEX64 = 13,
  TREADLE_COMPLEX128 = 14
};

/* A kind of device: 0 is the CPU, 1 the meta device; others are given by register_backend(). */
typedef int32_t treadle_device_type;
enum { TREADLE_CPU = 0, TREADLE_META = 1 };
typedef struct treadle_device {
  treadle_device_type type;
  int32_t index; /* -1: the current one of its type */
} treadle_device;

typedef struct treadle_tensor treadle_tensor;       /* counted; see retain and release */
typedef struct treadle_generator treadle_generator; /* a source of random numbers; borrowed */
typedef struct treadle_operator treadle_operator;   /* lives as long as the process */

/* One argument or result. Numbers are given by kind, whether the schema says int, float, bool or
 * Scalar. Lists are `count` entries that follow each other; a text is `count` bytes. */
typedef enum treadle_tag {
  TREADLE_TAG_NONE = 0,
  TREADLE_TAG_TENSOR = 1,
  TREADLE_TAG_BOOL = 2,
  TREADLE_TAG_INT = 3,
  TREADLE_TAG_FLOAT = 4,
  TREADLE_TAG_COMPLEX = 5,
  TREADLE_TAG_TEXT = 6,
  TREADLE_TAG_INTS = 7,
  TREADLE_TAG_FLOATS = 8,
  TREADLE_TAG_BOOLS = 9,
  TREADLE_TAG_TENSORS = 10, /* an entry that is null: no tensor */
  TREADLE_TAG_DTYPE = 11,
  TREADLE_TAG_LAYOUT = 12, /* in `integer`: 0 strided, others by register_layout() */
  TREADLE_TAG_DEVICE = 13,
  TREADLE_TAG_MEMORY_FORMAT = 14, /* `integer`: 0 contiguous, 1 preserve, 2 and 3 channels last */
  TREADLE_TAG_GENERATOR = 15
} treadle_tag;
typedef struct treadle_value {
  int32_t tag;
  uint32_t count;
  union {
    treadle_tensor* tensor;
    treadle_tensor* const* tensors;
    int64_t integer; /* of BOOL: 0 or 1 */
    double number;
    double complex_parts[2]; /* real, imaginary */
    const char* text;        /* not terminated by 0 */
    const int64_t* integers;
    const double* numbers;
    const uint8_t* bools;
    treadle_dtype dtype;
    treadle_device device;
    treadle_generator* generator;
  } as;
} treadle_value;

/* ---- expressions: operators as trees ---- */

/* A node of an expression; its children have smaller indices, the last node is the root. */
typedef enum treadle_node_kind {
  TREADLE_NODE_NAME = 0,   /* text: an operand or number of the call; acc, x, a, b, n; inf, nan, pi;
                              lowest, highest: the ends of the computed type's range */
  TREADLE_NODE_INT = 1,    /* integer */
  TREADLE_NODE_FLOAT = 2,  /* number */
  TREADLE_NODE_BOOL = 3,   /* integer: 0 or 1 */
  TREADLE_NODE_CALL = 4,   /* text: the function; see docs/functions-of-expressions.md */
  TREADLE_NODE_BINARY = 5, /* text: one of + - * / % == != < <= > >= && || */
  TREADLE_NODE_UNARY = 6,  /* text: - or ! */
  TREADLE_NODE_SELECT = 7  /* children: condition, value if true, value if false */
} treadle_node_kind;
#define TREADLE_MAX_CHILDREN 4
typedef struct treadle_node {
  int32_t kind;
  int32_t child_count;
  int32_t children[TREADLE_MAX_CHILDREN];
  const char* text; /* ends with 0; "" where the kind has none */
  int64_t integer;
  double number;
} treadle_node;
typedef struct treadle_expression {
  const treadle_node* nodes;
  size_t count; /* 0: absent */
} treadle_expression;

/* A tensor of a generated kernel's call: element (i, j, ...) is at storage + offset +
 * i * strides[0] + j * strides[1] + ..., all in bytes, outermost dimension first. */
typedef struct treadle_operand {
  void* storage; /* what `allocate` returned (or memory that the plug-in was given) */
  int64_t offset;
  const int64_t* strides;
  treadle_dtype dtype;
  const char* name; /* as the expression names it; of the output "out" */
} treadle_operand;

/* out[i] = body(inputs[0][i], inputs[1][i], ...; numbers) over a common shape. Dimensions are
 * merged where all operands allow; there is at least one, and none has size 0. Each operand is
 * converted to `compute` when it is read (bool: whether it differs from 0), and the body's value to
 * out's dtype when it is written. The pointers `key` are equal for calls with the same expressions,
 * for as long as the process runs: a kernel can be kept by key, dtypes and the names of the inputs
 * (a 0-dim tensor of the CPU comes as a number). */
typedef struct treadle_pointwise_call {
  uint32_t size;
  int32_t dims;
  const char* name; /* the operator's, "add" */
  const void* key;
  treadle_expression body;
  treadle_device device;
  treadle_dtype compute;
  int32_t input_count;
  const int64_t* shape;
  int64_t numel;
  treadle_operand out;
  const treadle_operand* inputs;
  const char* const* number_names;
  const treadle_value* numbers; /* BOOL, INT, FLOAT or COMPLEX */
  int32_t number_count;
  int32_t reserved;
} treadle_pointwise_call;

/* For each of `outputs` places of out: acc = init; for each x of those folded: acc = step(acc, x);
 * out = final(acc, n). combine(a, b) joins two partial results, in any grouping but in order. Where
 * `init` is absent the first element takes its place; where `final` is, acc is the result.
 * `kept` dimensions are those of the output, with strides of `in` and `out`; `folded` ones those
 * that are reduced. Both are merged and may be empty (one element); no size is 0. */
typedef struct treadle_reduce_call {
  uint32_t size;
  int32_t kept_dims;
  int32_t folded_dims;
  treadle_dtype compute; /* what acc and x are */
  const char* name;
  const void* key;
  treadle_expression init, step, combine, final;
  treadle_device device;
  const int64_t* kept_shape;
  const int64_t* folded_shape;
  treadle_operand in;  /* strides: those of the kept dimensions */
  treadle_operand out; /* strides: those of the kept dimensions */
  const int64_t* folded_strides;
  int64_t outputs; /* product of kept_shape */
  int64_t folded;  /* product of folded_shape: n */
} treadle_reduce_call;

/* ---- backends ---- */

/* A run of bytes in a copy: `storage` is what allocate() returned, or, on the CPU, an address. */
typedef struct treadle_place {
  void* storage;
  int64_t offset; /* bytes */
  treadle_device device;
} treadle_place;

/* A kind of device. Members after `deallocate` may be null; what is said of each is what happens
 * then. `context` is given back to every function. `index` is a device's, 0 <= index < count. */
typedef struct treadle_backend {
  uint32_t size;
  uint32_t flags;   /* TREADLE_CACHE_MEMORY, TREADLE_HOST_VISIBLE, TREADLE_ADDRESSABLE */
  const char* name; /* lower-case letters, digits and '_': treadle.device("name:0") */
  void* context;

  /* Devices. Null: one device. */
  treadle_status (*device_count)(void* context, int32_t* count);
  /* Tells that this thread's current device changed. Null: nothing needs to be told. */
  treadle_status (*set_device)(void* context, int32_t index);

  /* Memory. `storage` is opaque to Treadle (unless TREADLE_HOST_VISIBLE): an address, or a handle
   * such as cl_mem. nbytes > 0. */
  treadle_status (*allocate)(void* context, int32_t index, size_t nbytes, void** storage);
  void (*deallocate)(void* context, int32_t index, void* storage, size_t nbytes);
  /* Copies bytes between a device of the backend and the CPU, or within the backend. When it
   * returns, CPU memory may be read or reused; with `non_blocking`, only after a synchronisation.
   * Never null. May decline a copy between two of its devices: it then goes by way of the CPU. */
  treadle_status (*copy)(void* context, treadle_place to, treadle_place from, size_t nbytes,
                         int32_t non_blocking);

  /* Generated kernels: run the call, or return TREADLE_DECLINED. Null: all declined. */
  treadle_status (*pointwise)(void* context, const treadle_pointwise_call* call);
  treadle_status (*reduce)(void* context, const treadle_reduce_call* call);

  /* Waits for all work of the device. Null: work is never queued. */
  treadle_status (*synchronize)(void* context, int32_t index);

  /* Streams: queues of work; 0 is the default one. Null: the default only. `stream_create`,
   * `stream_set` and `stream_query` go together; null `stream_synchronize`: the device is waited
   * for. */
  treadle_status (*stream_create)(void* context, int32_t index, int32_t priority, uint64_t* stream);
  void (*stream_destroy)(void* context, int32_t index, uint64_t stream);
  /* The stream that this thread's work goes to from now on. */
  treadle_status (*stream_set)(void* context, int32_t index, uint64_t stream);
  treadle_status (*stream_query)(void* context, int32_t index, uint64_t stream, int32_t* idle);
  treadle_status (*stream_synchronize)(void* context, int32_t index, uint64_t stream);

  /* Events: marks in a stream. Null: an event is complete at once. All but the last two go
   * together; null `event_synchronize`: the event is asked until it is complete. With
   * TREADLE_CACHE_MEMORY Treadle uses them for its own ends too, with a lock held: they must call
   * nothing of it. */
  treadle_status (*event_create)(void* context, int32_t index, int32_t timing, void** event);
  void (*event_destroy)(void* context, int32_t index, void* event);
  treadle_status (*event_record)(void* context, int32_t index, void* event, uint64_t stream);
  treadle_status (*event_wait)(void* context, int32_t index, void* event, uint64_t stream);
  treadle_status (*event_query)(void* context, void* event, int32_t* complete);
  treadle_status (*event_synchronize)(void* context, void* event);
  treadle_status (*event_elapsed)(void* context, void* start, void* end, double* milliseconds);

  /* CPU memory from which copies are quick; both or none. Null: pageable memory serves. */
  treadle_status (*pinned_allocate)(void* context, size_t nbytes, void** data);
  void (*pinned_deallocate)(void* context, void* data, size_t nbytes);

  /* Text for people: "Intel(R) ..."; written with its final 0 into `text` of `capacity` bytes. */
  treadle_status (*device_name)(void* context, int32_t index, char* text, size_t capacity);
  /* Bytes of the device in all, and free ones. Null: unknown (0). */
  treadle_status (*memory_info)(void* context, int32_t index, size_t* free_bytes, size_t* total);

  /* The name under which storages are saved. Null: `name`. */
  const char* storage_tag;
  /* Autocast: the dtype that it casts to unless told, and the mask (1 << dtype) of those allowed.
   * 0: float16 or bfloat16, bfloat16 unless told. */
  treadle_dtype autocast_dtype;
  uint32_t autocast_dtypes;
  /* The mask (1 << dtype) of dtypes that tensors on the device may have. 0: all. */
  uint32_t dtypes;
  uint32_t reserved;
} treadle_backend;
/* Freed memory is kept for later allocations of about its size, by device and stream. */
#define TREADLE_CACHE_MEMORY 1u
/* Storages are addresses that the CPU may read and write once the device is synchronised. */
#define TREADLE_HOST_VISIBLE 2u
/* Storages are addresses, and an address within what was allocated is as good: Treadle may then cut
 * the memory that it keeps into several storages. */
#define TREADLE_ADDRESSABLE 4u

/* ---- kernels and operators ---- */

/* A kernel. `arguments` are those of the operator in the order of its schema and then, for each
 * result, a tensor on the device to be filled: contiguous, of the right shape and dtype, sharing no
 * memory with an argument. So one kernel serves the functional, in-place and out= forms.
 * Where the schema's results have shapes that only the kernel knows
 * (`treadle_operator_info.returns`) there are no such tensors: it puts new values into `results`
 * instead, tensors it owns. Where an operator writes its first argument (_fill_), that tensor is
 * the one to write. */
typedef treadle_status (*treadle_kernel)(void* context, const treadle_value* arguments,
                                         size_t count, treadle_value* results, size_t result_count);

/* An argument or result in a schema. */
typedef struct treadle_argument_info {
  const char* name; /* "" of a result without one */
  const char* type; /* as the schema writes it: "int[2]", "Tensor?" */
  int32_t tag;      /* of its values; of Scalar COMPLEX, for any number */
  int32_t optional; /* 1: may also be NONE */
} treadle_argument_info;

typedef struct treadle_operator_info {
  uint32_t size;
  int32_t returns;    /* 1: the kernel makes the results itself */
  const char* name;   /* "aten::add.Tensor" */
  const char* schema; /* "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
  /* The values for a kernel: the arguments, and after them `output_count` tensors to be filled; 0
   * where `returns`, and where the operator writes its first argument. */
  const treadle_argument_info* arguments;
  size_t argument_count;
  size_t output_count;
  /* The results of the operator. */
  const treadle_argument_info* results;
  size_t result_count;
} treadle_operator_info;

/* The parts of a new operator. Kernels are given the arguments, and put what they return into
 * `results`. */
typedef struct treadle_definition {
  uint32_t size;
  uint32_t reserved;
  const char* schema; /* "my_ns::name(Tensor x, int n) -> Tensor" */
  void* context;
  treadle_kernel kernel; /* for every device without one of its own; may be null */
  treadle_kernel meta;   /* the shapes of the results, without values; may be null */
} treadle_definition;

/* ---- what Treadle offers ---- */

typedef struct treadle_api {
  uint32_t size;
  uint32_t version;            /* of the interface, TREADLE_PLUGIN_VERSION of the host */
  const char* treadle_version; /* "0.1.0" */

  /* Errors of the calling thread. set_error copies the text and returns `kind`. */
  treadle_status (*set_error)(treadle_status kind, const char* text);
  const char* (*last_error)(void); /* the text of the last one; lives until the next */

  /* Registration. Rejected, with both sides shown, where it does not fit; if the plug-in's start
   * function fails, all that it registered is taken back. */
  treadle_status (*register_backend)(const treadle_backend* backend, treadle_device_type* type);
  treadle_status (*register_layout)(const char* name, int32_t* layout);
  /* A kernel of an operator for a kind of device. `schema` is what it was written for, compared
   * with the operator's. `dtypes`: of the argument that the entry's `dtype_of` names, its first
   * tensor where it names none; null: all that the operator is declared for. */
  treadle_status (*register_kernel)(const char* schema, treadle_device_type device,
                                    const treadle_dtype* dtypes, size_t dtype_count,
                                    treadle_kernel kernel, void* context);
  treadle_status (*define_operator)(const treadle_definition* definition);

  /* Tensors. New ones are given with one reference. */
  void (*retain)(treadle_tensor* tensor);
  void (*release)(treadle_tensor* tensor);
  treadle_dtype (*dtype)(const treadle_tensor* tensor);
  treadle_device (*device)(const treadle_tensor* tensor);
  int32_t (*layout)(const treadle_tensor* tensor);
  int32_t (*dim)(const treadle_tensor* tensor);
  const int64_t* (*sizes)(const treadle_tensor* tensor);   /* dim() entries */
  const int64_t* (*strides)(const treadle_tensor* tensor); /* in elements */
  int64_t (*numel)(const treadle_tensor* tensor);
  int32_t (*is_contiguous)(const treadle_tensor* tensor);
  void* (*storage)(const treadle_tensor* tensor); /* what allocate() returned */
  size_t (*storage_nbytes)(const treadle_tensor* tensor);
  int64_t (*storage_offset)(const treadle_tensor* tensor); /* of the first element, in elements */
  /* The address of the first element: storage() as an address plus the offset. */
  void* (*data)(const treadle_tensor* tensor);
  /* Uninitialised; `strides` null: contiguous. */
  treadle_status (*empty)(const int64_t* sizes, const int64_t* strides, int32_t dim,
                          treadle_dtype dtype, treadle_device device, treadle_tensor** tensor);
  /* Over memory of the caller's, contiguous; `release(context)` is called when it is no longer
   * needed, from any thread; never where this fails. */
  treadle_status (*from_memory)(void* storage, const int64_t* sizes, int32_t dim,
                                treadle_dtype dtype, treadle_device device,
                                void (*release)(void* context), void* context,
                                treadle_tensor** tensor);
  /* Another geometry over the same memory, strides and offset in elements; checked to stay inside.
   */
  treadle_status (*as_strided)(const treadle_tensor* tensor, const int64_t* sizes,
                               const int64_t* strides, int32_t dim, int64_t offset,
                               treadle_tensor** view);
  size_t (*item_size)(treadle_dtype dtype);
  const char* (*dtype_name)(treadle_dtype dtype); /* "float32" */

  /* Operators. `find` takes "aten::mm" or "mm"; TREADLE_RUNTIME_ERROR when there is none. */
  treadle_status (*find)(const char* name, const treadle_operator** op);
  treadle_status (*operator_info)(const treadle_operator* op, treadle_operator_info* info);
  /* Calls it: missing arguments at the end take their defaults. `results` has room for `capacity`;
   * release_values() frees what is in it. Gradients are recorded as in any call. */
  treadle_status (*call)(const treadle_operator* op, const treadle_value* arguments, size_t count,
                         treadle_value* results, size_t capacity, size_t* result_count);
  void (*release_values)(treadle_value* values, size_t count);
  /* A list of tensors as a result; takes over the reference of each. */
  treadle_status (*make_tensors)(treadle_tensor* const* tensors, size_t count,
                                 treadle_value* value);

  /* Random numbers: reserves `blocks` counters of Philox 4x32-10 (four 32-bit numbers each) and
   * says where they start. `generator` null: the default one of the device. */
  treadle_status (*reserve_random)(treadle_generator* generator, treadle_device device,
                                   uint64_t blocks, uint64_t* seed, uint64_t* offset);

  /* body(context, begin, end) on pieces of [0, count) of at least `grain`, in parallel. */
  treadle_status (*parallel_for)(int64_t count, int64_t grain,
                                 treadle_status (*body)(void* context, int64_t begin, int64_t end),
                                 void* context);
  int32_t (*current_device)(treadle_device_type type);
  uint64_t (*current_stream)(treadle_device_type type);

  /* Calls `found(context, type)` once for the kind of device of that name: now, where its backend
   * is there, else when it is registered. So a plug-in brings kernels for the device of another
   * one. */
  treadle_status (*when_device)(const char* name,
                                treadle_status (*found)(void* context, treadle_device_type type),
                                void* context);
} treadle_api;

/* A plug-in: treadle_plugin_entry() returns it. `start` is called once, with an api that
 * lives as long as the process. */
typedef struct treadle_plugin {
  uint32_t size;
  uint32_t interface_version; /* TREADLE_PLUGIN_VERSION, as the plug-in was built */
  const char* name;
  const char* version;
  treadle_status (*start)(const treadle_api* api);
} treadle_plugin;
TREADLE_PLUGIN_EXPORT const treadle_plugin* treadle_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif /* TREADLE_PLUGIN_H */
