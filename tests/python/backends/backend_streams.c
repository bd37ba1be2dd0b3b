/* For tests: a backend in host memory with all that one may have: two devices, streams and events
 * that are numbers, pinned memory, a storage tag, dtypes of its own. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <treadle/plugin.h>

#ifndef FLAGS
#define FLAGS TREADLE_CACHE_MEMORY
#endif
#ifndef CAPACITY
#define CAPACITY 1000
#endif

TREADLE_PLUGIN_EXPORT int32_t events_passed = 1; /* what event_query() tells; for the test to set */
static int32_t streams, events, pinned;
static uint64_t current;

static treadle_status device_count(void* c, int32_t* count) {
  (void)c;
  *count = 2;
  return TREADLE_OK;
}
static treadle_status allocate(void* c, int32_t index, size_t nbytes, void** storage) {
  (void)c, (void)index;
  *storage = malloc(nbytes);
  return *storage ? TREADLE_OK : TREADLE_OUT_OF_MEMORY;
}
static void deallocate(void* c, int32_t index, void* storage, size_t nbytes) {
  (void)c, (void)index, (void)nbytes;
  free(storage);
}
static treadle_status copy(void* c, treadle_place to, treadle_place from, size_t nbytes,
                           int32_t non_blocking) {
  (void)c, (void)non_blocking;
  memmove((char*)to.storage + to.offset, (char*)from.storage + from.offset, nbytes);
  return TREADLE_OK;
}
static treadle_status stream_create(void* c, int32_t index, int32_t priority, uint64_t* stream) {
  (void)c, (void)index, (void)priority;
  *stream = (uint64_t)++streams;
  return TREADLE_OK;
}
static treadle_status stream_set(void* c, int32_t index, uint64_t stream) {
  (void)c, (void)index;
  current = stream;
  return TREADLE_OK;
}
static treadle_status stream_query(void* c, int32_t index, uint64_t stream, int32_t* idle) {
  (void)c, (void)index, (void)stream;
  *idle = 1;
  return TREADLE_OK;
}
/* An event is the place of its last record in the order of all. */
static treadle_status event_create(void* c, int32_t index, int32_t timing, void** event) {
  (void)c, (void)index, (void)timing;
  *event = calloc(1, sizeof(int32_t));
  return *event ? TREADLE_OK : TREADLE_OUT_OF_MEMORY;
}
static void event_destroy(void* c, int32_t index, void* event) {
  (void)c, (void)index;
  free(event);
}
static treadle_status event_record(void* c, int32_t index, void* event, uint64_t stream) {
  (void)c, (void)index, (void)stream;
  *(int32_t*)event = ++events;
  return TREADLE_OK;
}
static treadle_status event_wait(void* c, int32_t index, void* event, uint64_t stream) {
  (void)c, (void)index, (void)event, (void)stream;
  return TREADLE_OK;
}
static treadle_status event_query(void* c, void* event, int32_t* complete) {
  (void)c, (void)event;
  *complete = events_passed;
  return TREADLE_OK;
}
static treadle_status event_elapsed(void* c, void* start, void* end, double* milliseconds) {
  (void)c;
  *milliseconds = *(int32_t*)end - *(int32_t*)start;
  return TREADLE_OK;
}
static treadle_status pinned_allocate(void* c, size_t nbytes, void** data) {
  (void)c;
  ++pinned;
  *data = malloc(nbytes);
  return *data ? TREADLE_OK : TREADLE_OUT_OF_MEMORY;
}
static void pinned_deallocate(void* c, void* data, size_t nbytes) {
  (void)c, (void)nbytes;
  --pinned;
  free(data);
}
static treadle_status memory_info(void* c, int32_t index, size_t* free_bytes, size_t* total) {
  (void)c, (void)index;
  *total = CAPACITY;
  *free_bytes = CAPACITY - (size_t)pinned; /* so that tests see what is pinned */
  return TREADLE_OK;
}

static treadle_status start(const treadle_api* api) {
  treadle_backend b;
  treadle_device_type type;
  memset(&b, 0, sizeof b);
  b.size = sizeof b;
  b.name = "streams";
  b.flags = FLAGS;
  b.device_count = &device_count;
  b.allocate = &allocate;
  b.deallocate = &deallocate;
  b.copy = &copy;
  b.stream_create = &stream_create;
  b.stream_set = &stream_set;
  b.stream_query = &stream_query;
  b.event_create = &event_create;
  b.event_destroy = &event_destroy;
  b.event_record = &event_record;
  b.event_wait = &event_wait;
  b.event_query = &event_query;
  b.event_elapsed = &event_elapsed;
  b.pinned_allocate = &pinned_allocate;
  b.pinned_deallocate = &pinned_deallocate;
  b.memory_info = &memory_info;
  b.storage_tag = "tag_of_streams";
  b.autocast_dtype = TREADLE_FLOAT16;
  b.autocast_dtypes = 1u << TREADLE_FLOAT16;
  b.dtypes = ~(1u << TREADLE_FLOAT64);
  return api->register_backend(&b, &type);
}
static const treadle_plugin plugin = {sizeof(treadle_plugin), TREADLE_PLUGIN_VERSION, "streams",
                                      "1.0", &start};
TREADLE_PLUGIN_EXPORT const treadle_plugin* treadle_plugin_entry(void) { return &plugin; }
