// A CUDA driver with no GPU: device memory is host memory, a stream runs at once, and the one kernel is a C function.
// It shows that the engine calls the driver as it must: handles, contexts, launch parameters, frees. What it cannot
// show is overlap and the code of kernels; for that there is a GPU.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidContext = 201,
  kNotFound = 500,
  kCaptureUnsupported = 900
};
enum { kContext = 0x1000, kPool = 0x2000, kModule = 0x3000, kFirstStream = 0x4000 };

static _Thread_local uintptr_t contexts[64];
static _Thread_local int depth = 0;
static long long live_bytes = 0, live_buffers = 0;
static const long long kTotalBytes = 1ll << 30;

long long calls = 0;  // of functions that a process without a GPU must not call

#define NEED_CONTEXT()                                                         \
  do {                                                                         \
    ++calls;                                                                   \
    if (depth == 0 || contexts[depth - 1] != kContext) return kInvalidContext; \
  } while (0)

Result cuInit(unsigned flags) { return flags ? kInvalidValue : kSuccess; }
Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  ++calls;
  *count = 1;
  return kSuccess;
}
Result cuDeviceGet(int* device, int index) {
  *device = index;
  return kSuccess;
}
Result cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, length, "fake");
  return kSuccess;
}
Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = kTotalBytes;
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  // 13 and 36: the clocks, in kHz
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 13 ? 1980000 : which == 36 ? 3201000 : 1;
  return kSuccess;
}
Result cuGetErrorString(Result status, const char** text) {
  (void)status;
  *text = "fake driver";
  return kSuccess;
}
Result cuGetErrorName(Result status, const char** text) {
  (void)status;
  *text = "FAKE";
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(uintptr_t* context, int device) {
  (void)device;
  *context = kContext;
  return kSuccess;
}
Result cuCtxPushCurrent_v2(uintptr_t context) {
  contexts[depth++] = context;
  return kSuccess;
}
Result cuCtxPopCurrent_v2(uintptr_t* context) {
  *context = contexts[--depth];
  return kSuccess;
}
Result cuCtxGetCurrent(uintptr_t* context) {
  ++calls;
  *context = depth ? contexts[depth - 1] : 0;
  return kSuccess;
}
// The heap of malloc in kernels is the one limit.
static size_t heap_bytes = 8 << 20;
Result cuCtxGetLimit(size_t* value, int which) {
  NEED_CONTEXT();
  *value = heap_bytes;
  return which == 2 ? kSuccess : kInvalidValue;
}
Result cuCtxSetLimit(int which, size_t value) {
  NEED_CONTEXT();
  heap_bytes = value;
  return which == 2 ? kSuccess : kInvalidValue;
}

Result cuStreamCreate(uintptr_t* stream, unsigned flags) {
  static uintptr_t next = kFirstStream;
  (void)flags;
  NEED_CONTEXT();
  *stream = next++;
  return kSuccess;
}
Result cuStreamDestroy_v2(uintptr_t stream) {
  (void)stream;
  return kSuccess;
}
Result cuStreamSynchronize(uintptr_t stream) {
  (void)stream;
  NEED_CONTEXT();
  return kSuccess;
}
// One capture at a time, of one launch. A wait or an event breaks it: neither belongs into the graph of a caller.
static uintptr_t captured = 0;
static int capture_is_broken = 0;
static struct {
  uint64_t factor, batch[16], lanes;
} node;

enum { kGlobal = 0, kRelaxed = 2 };
static _Thread_local int capture_mode = kGlobal;
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return kSuccess;
}
Result cuStreamBeginCapture_v2(uintptr_t stream, int mode) {
  if (captured || mode != kGlobal) return kInvalidValue;
  captured = stream;
  capture_is_broken = 0;
  return kSuccess;
}
Result cuStreamIsCapturing(uintptr_t stream, int* status) {
  *status = stream == captured;
  return kSuccess;
}
Result cuStreamEndCapture(uintptr_t stream, uintptr_t* graph) {
  if (stream != captured) return kInvalidValue;
  captured = 0;
  *graph = 0x6000;
  return capture_is_broken ? kInvalidValue : kSuccess;
}
Result cuGraphInstantiateWithFlags(uintptr_t* executable, uintptr_t graph, unsigned long long flags) {
  *executable = graph + 1;
  return flags ? kInvalidValue : kSuccess;
}
static void scale_add(const uint64_t* batch, uint64_t factor, uint64_t lanes) {
  for (uint64_t i = 0; i < lanes && i < batch[0]; ++i)
    ((uint64_t*)batch[9])[i] = ((const uint64_t*)batch[6])[i] * factor + batch[12];
}
Result cuGraphLaunch(uintptr_t executable, uintptr_t stream) {
  NEED_CONTEXT();
  if (executable != 0x6001 || stream == captured) return kInvalidValue;
  scale_add(node.batch, node.factor, node.lanes);
  return kSuccess;
}
// What each stream is behind: so many operations of each other stream. The legacy stream and the streams of
// cuStreamCreate come behind each other once they are given something; a stream that nobody made here comes behind none.
enum { kMostStreams = 16, kMostEvents = 64, kFirstEvent = 0x5000 };
typedef long long Order[kMostStreams];
static uintptr_t handles[kMostStreams] = {1};
static Order behind[kMostStreams], at_event[kMostEvents];
static int row(uintptr_t stream) {
  int at = 0;
  while (handles[at] != stream && handles[at]) ++at;
  handles[at] = stream;
  return at;
}
static void follow(Order later, const Order earlier) {
  for (int i = 0; i < kMostStreams; ++i)
    if (later[i] < earlier[i]) later[i] = earlier[i];
}
void give(uintptr_t stream) {  // one operation
  const int at = row(stream);
  for (int other = 0; other < kMostStreams; ++other)
    if ((at == 0 && handles[other] >= kFirstStream) || (other == 0 && stream >= kFirstStream))
      follow(behind[at], behind[other]);
  ++behind[at][at];
}
int is_behind(uintptr_t stream, uintptr_t other) {  // what comes next on `stream` begins when `other` is done
  return behind[row(stream)][row(other)] >= behind[row(other)][row(other)];
}

long long waits = 0;               // of a stream for an event
unsigned long long threshold = 0;  // of the pool
Result cuStreamWaitEvent(uintptr_t stream, uintptr_t event, unsigned flags) {
  (void)flags, ++waits;
  capture_is_broken |= stream == captured;
  if (!event) return kInvalidValue;
  follow(behind[row(stream)], at_event[(event - kFirstEvent) % kMostEvents]);
  return kSuccess;
}
Result cuEventCreate(uintptr_t* event, unsigned flags) {
  static uintptr_t next = kFirstEvent;
  NEED_CONTEXT();
  *event = flags == 2 ? next++ : 0;
  return kSuccess;
}
Result cuEventRecord(uintptr_t event, uintptr_t stream) {
  capture_is_broken |= stream == captured;
  NEED_CONTEXT();
  if (!event) return kInvalidValue;
  memcpy(at_event[(event - kFirstEvent) % kMostEvents], behind[row(stream)], sizeof(Order));
  return kSuccess;
}
int next_wait = kSuccess;  // what the next wait for an event answers: errors of kernels come out there
Result cuEventSynchronize(uintptr_t event) {
  const int status = next_wait;
  next_wait = kSuccess;
  return event ? status : kInvalidValue;
}
Result cuEventDestroy_v2(uintptr_t event) { return event ? kSuccess : kInvalidValue; }

Result cuMemPoolCreate(uintptr_t* pool, const int* properties) {
  // {allocType = pinned, handleTypes = none, location = {device, 0}}
  if (properties[0] != 1 || properties[1] != 0 || properties[2] != 1 || properties[3] != 0) return kInvalidValue;
  *pool = kPool;
  return kSuccess;
}
Result cuMemPoolSetAttribute(uintptr_t pool, int attribute, void* value) {
  if (attribute == 4) threshold = *(uint64_t*)value;
  return pool == kPool && attribute == 4 ? kSuccess : kInvalidValue;
}
Result cuMemPoolGetAttribute(uintptr_t pool, int attribute, void* value) {
  // the memory that is mapped, and that of it in use: freed memory goes back at once
  *(uint64_t*)value = live_bytes;
  return pool == kPool && (attribute == 5 || attribute == 7) ? kSuccess : kInvalidValue;
}
Result cuMemPoolTrimTo(uintptr_t pool, size_t bytes) {
  (void)bytes;
  return pool == kPool ? kSuccess : kInvalidValue;
}
Result cuMemAllocFromPoolAsync(uintptr_t* ptr, size_t bytes, uintptr_t pool, uintptr_t stream) {
  NEED_CONTEXT();
  if (pool != kPool || stream == 0) return kInvalidValue;
  if (live_bytes + (long long)bytes > kTotalBytes) return kOutOfMemory;
  char* block = aligned_alloc(256, 256 + (bytes + 255) / 256 * 256);
  *(size_t*)block = bytes;
  memset(block + 256, 0xCD, bytes);
  live_bytes += bytes, live_buffers += 1;
  *ptr = (uintptr_t)block + 256;
  return kSuccess;
}
Result cuMemFreeAsync(uintptr_t ptr, uintptr_t stream) {
  NEED_CONTEXT();
  if (stream == 0) return kInvalidValue;
  char* block = (char*)ptr - 256;
  live_bytes -= *(size_t*)block, live_buffers -= 1;
  free(block);
  return kSuccess;
}
Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  NEED_CONTEXT();
  *free_bytes = kTotalBytes - live_bytes, *total = kTotalBytes;
  return kSuccess;
}
Result cuMemHostAlloc(void** ptr, size_t bytes, unsigned flags) {
  (void)flags;
  NEED_CONTEXT();
  *ptr = malloc(bytes);
  return kSuccess;
}
Result cuMemFreeHost(void* ptr) {
  NEED_CONTEXT();
  free(ptr);
  return kSuccess;
}
Result cuPointerGetAttribute(void* data, int which, uintptr_t ptr) {
  ++calls;
  *(int*)data = 0;
  return which == 9 /* the device */ && ptr % 256 == 0 ? kSuccess : kInvalidValue;
}
Result cuMemsetD8Async(uintptr_t ptr, unsigned char byte, size_t n, uintptr_t stream) {
  (void)stream;
  NEED_CONTEXT();
  if (!ptr) return kInvalidValue;
  memset((void*)ptr, byte, n);
  return kSuccess;
}
Result cuMemcpyAsync(uintptr_t target, uintptr_t source, size_t n, uintptr_t stream) {
  (void)stream;
  NEED_CONTEXT();
  if (!target || !source) return kInvalidValue;
  memmove((void*)target, (void*)source, n);
  return kSuccess;
}

enum { kLaunchBounds = 256, kMostEarlyThreads = 1 << 19 };
Result cuModuleLoadData(uintptr_t* module, const char* image) {
  NEED_CONTEXT();
  if (captured && capture_mode != kRelaxed) return capture_is_broken = 1, kCaptureUnsupported;
  *module = kModule;
  return memcmp(image, "\177ELF", 4) ? kInvalidValue : kSuccess;
}
Result cuModuleGetFunction(uintptr_t* function, uintptr_t module, const char* name) {
  static int scale_add;
  if (module != kModule || strcmp(name, "scale_add")) return kNotFound;
  if (captured && capture_mode != kRelaxed) return capture_is_broken = 1, kCaptureUnsupported;
  *function = (uintptr_t)&scale_add;
  return kSuccess;
}
Result cuFuncGetAttribute(int* value, int attribute, uintptr_t function) {
  if (!function || attribute != 0 /* most threads of a block */) return kInvalidValue;
  *value = kLaunchBounds;
  return kSuccess;
}
// The kernel of test_cuda.py: out_values[i] = keys[i] * table.buckets + batch.default_value, in 64 bits.
struct Attribute {
  int id, padding;
  uint8_t value[64];
};
struct Grid {
  unsigned gx, gy, gz, bx, by, bz, shared;
  uintptr_t stream;
  const struct Attribute* attributes;
  unsigned number;
};
Result cuLaunchKernelEx(const struct Grid* grid, uintptr_t function, void** parameters, void** extra) {
  NEED_CONTEXT();
  const unsigned gx = grid->gx, bx = grid->bx;
  if (!function || grid->gy != 1 || grid->gz != 1 || bx > kLaunchBounds || bx % 32 || grid->by != 1 || grid->bz != 1 ||
      grid->shared || !grid->stream || extra)
    return kInvalidValue;
  const unsigned early = (uint64_t)gx * bx <= kMostEarlyThreads;
  if (grid->number != early ||
      (early && (grid->attributes->id != 6 /* may begin early */ || grid->attributes->value[0] != 1)))
    return kInvalidValue;
  const uint64_t* table = parameters[0];
  const uint64_t* batch = parameters[1];
  if (grid->stream == captured) {
    node.factor = table[1], node.lanes = (uint64_t)gx * bx;
    memcpy(node.batch, batch, sizeof node.batch);
    return kSuccess;
  }
  scale_add(batch, table[1], (uint64_t)gx * bx);
  return kSuccess;
}

// Every name, with or without its version's suffix, as the bindings ask for it.
#include <dlfcn.h>
Result cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* status) {
  static const char* const suffixes[] = {"", "_v2"};
  char symbol[128];
  (void)version, (void)flags;
  *function = NULL;
  for (int i = 0; i < 2 && !*function; ++i) {
    snprintf(symbol, sizeof symbol, "%s%s", name, suffixes[i]);
    *function = dlsym(RTLD_DEFAULT, symbol);
    if (!*function) {
      void* self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
      if (self) *function = dlsym(self, symbol);
    }
  }
  if (status) *status = *function ? 0 : 1;
  return *function ? kSuccess : kNotFound;
}
Result cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
