#define _GNU_SOURCE
#define ZSTD_STATIC_LINKING_ONLY
#include "tests/failing/failing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

static failing_kind kind;
static size_t events, wanted;
static int code;
static bool stays, happened;

void failing_start(failing_kind start, size_t nth, int error, bool stay)
{
    events = 0;
    wanted = nth;
    code = error;
    stays = stay;
    happened = false;
    kind = start;
}

bool failing_stop(void)
{
    kind = FAIL_NOTHING;
    return happened;
}

static bool fails(failing_kind event)
{
    if (event != kind) {
        return false;
    }
    const size_t number = events++;
    if (number != wanted && !(stays && number > wanted)) {
        return false;
    }
    happened = true;
    errno = code;
    return true;
}

/* ---- Memory ---- */

/* Code whose allocations never fail: where the runtime of OpenMP and OpenBLAS are mapped. */
static struct range {
    uintptr_t from, to;
} spared[8];
static size_t spared_count;

static int note_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    static const char *const names[] = {"libgomp", "libomp", "libopenblas", "libsentencepiece",
                                        "libprotobuf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(info->dlpi_name, names[i]) == NULL || spared_count == 8) {
            continue;
        }
        for (int p = 0; p < info->dlpi_phnum; p++) {
            if (info->dlpi_phdr[p].p_type == PT_LOAD && (info->dlpi_phdr[p].p_flags & PF_X) != 0) {
                const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[p].p_vaddr;
                spared[spared_count++] = (struct range){from, from + info->dlpi_phdr[p].p_memsz};
                break;
            }
        }
    }
    return 0;
}

static bool memory_fails(const void *caller)
{
    if (kind != FAIL_MEMORY) {
        return false;
    }
    for (size_t i = 0; i < spared_count; i++) {
        if ((uintptr_t)caller >= spared[i].from && (uintptr_t)caller < spared[i].to) {
            return false;
        }
    }
    return fails(FAIL_MEMORY);
}

#define CALLER __builtin_return_address(0)
#define EXPORTED __attribute__((visibility("default")))

#ifdef EG_SANITIZED

#define ALLOCATOR(name) __wrap_##name
#define UNDERLYING(name) __real_##name
#define COUNT(change) ((void)0)

static void *hooked_malloc(size_t size)
{
    return memory_fails(NULL) ? NULL : malloc(size);
}

static void *zstd_malloc(void *user, size_t size)
{
    (void)user;
    return hooked_malloc(size);
}

static void zstd_free(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static const ZSTD_customMem zstd_memory = {zstd_malloc, zstd_free, NULL};

ZSTD_DStream *__wrap_ZSTD_createDStream(void);
ZSTD_DStream *__wrap_ZSTD_createDStream(void)
{
    return ZSTD_createDStream_advanced(zstd_memory);
}

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    return ZSTD_createCCtx_advanced(zstd_memory);
}

size_t failing_live(void)
{
    return 0;
}

#else

#define ALLOCATOR(name) name
#define UNDERLYING(name) __libc_##name

static atomic_size_t live;
#define COUNT(change) atomic_fetch_add(&live, (size_t)(change))

void *__libc_malloc(size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

EXPORTED void free(void *memory)
{
    if (memory != NULL) {
        COUNT(-1);
    }
    __libc_free(memory);
}

EXPORTED int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = memory_fails(CALLER) ? NULL : __libc_memalign(alignment, size);
    if (memory == NULL) {
        return ENOMEM;
    }
    COUNT(1);
    *out = memory;
    return 0;
}

/* operator new, so that the caller is known: the library of C++ would seem to be. */
void _ZSt17__throw_bad_allocv(void) __attribute__((noreturn));
EXPORTED void *_Znwm(size_t size);
EXPORTED void *_Znwm(size_t size)
{
    void *memory = memory_fails(CALLER) ? NULL : __libc_malloc(size);
    if (memory == NULL) {
        _ZSt17__throw_bad_allocv();
    }
    COUNT(1);
    return memory;
}

size_t failing_live(void)
{
    return atomic_load(&live);
}

#endif

void *UNDERLYING(malloc)(size_t size);
void *UNDERLYING(calloc)(size_t count, size_t size);
void *UNDERLYING(realloc)(void *memory, size_t size);

EXPORTED void *ALLOCATOR(malloc)(size_t size);
EXPORTED void *ALLOCATOR(malloc)(size_t size)
{
    void *memory = memory_fails(CALLER) ? NULL : UNDERLYING(malloc)(size);
    COUNT(memory != NULL);
    return memory;
}

EXPORTED void *ALLOCATOR(calloc)(size_t count, size_t size);
EXPORTED void *ALLOCATOR(calloc)(size_t count, size_t size)
{
    void *memory = memory_fails(CALLER) ? NULL : UNDERLYING(calloc)(count, size);
    COUNT(memory != NULL);
    return memory;
}

EXPORTED void *ALLOCATOR(realloc)(void *memory, size_t size);
EXPORTED void *ALLOCATOR(realloc)(void *memory, size_t size)
{
    if (memory_fails(CALLER)) {
        return NULL;
    }
    void *larger = UNDERLYING(realloc)(memory, size);
    COUNT(memory == NULL && larger != NULL);
    return larger;
}

EXPORTED void *ALLOCATOR(aligned_alloc)(size_t alignment, size_t size);
#ifdef EG_SANITIZED
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return memory_fails(NULL) ? NULL : __real_aligned_alloc(alignment, size);
}
#else
EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
    void *memory = memory_fails(CALLER) ? NULL : __libc_memalign(alignment, size);
    COUNT(memory != NULL);
    return memory;
}
#endif

void failing_init(void)
{
    dl_iterate_phdr(note_library, NULL);
#ifdef EG_SANITIZED
    json_set_alloc_funcs(hooked_malloc, free);
#endif
}

/* ---- The system ---- */

static bool call_fails(bool writes)
{
    return fails(FAIL_CALLS) || (writes && fails(FAIL_WRITES));
}

/* WRAP(return type, name, parameters, arguments, whether it changes a disk, result of failing) */
#define WRAP(type, name, parameters, arguments, writes, failed)                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return call_fails(writes) ? (failed) : __real_##name arguments;                            \
    }

WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), mode[0] != 'r', NULL)
WRAP(FILE *, fdopen, (int descriptor, const char *mode), (descriptor, mode), false, NULL)
WRAP(int, fflush, (FILE * file), (file), file != NULL && file != stdout, EOF)
WRAP(int, fsync, (int descriptor), (descriptor), true, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), true, -1)
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags), true, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), true, -1)
WRAP(int, fstat, (int descriptor, struct stat *info), (descriptor, info), false, -1)
WRAP(DIR *, opendir, (const char *path), (path), false, NULL)
WRAP(struct dirent *, readdir, (DIR * listing), (listing), false, NULL)
WRAP(int, flock, (int descriptor, int operation), (descriptor, operation), true, -1)

int __real_fclose(FILE *file);
int __wrap_fclose(FILE *file);
int __wrap_fclose(FILE *file)
{
    const bool failed = call_fails(true);
    const int error = errno;
    const int result = __real_fclose(file);
    errno = failed ? error : errno;
    return failed ? EOF : result;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return call_fails((flags & O_ACCMODE) != O_RDONLY) ? -1 : __real_open(path, flags, mode);
}

void *__real_mmap(void *at, size_t size, int access, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *at, size_t size, int access, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *at, size_t size, int access, int flags, int descriptor, off_t offset)
{
    const bool failed = (flags & MAP_ANONYMOUS) != 0 ? fails(FAIL_MEMORY) : call_fails(false);
    return failed ? MAP_FAILED : __real_mmap(at, size, access, flags, descriptor, offset);
}

ssize_t __real_read(int descriptor, void *bytes, size_t size);
ssize_t __wrap_read(int descriptor, void *bytes, size_t size);
ssize_t __wrap_read(int descriptor, void *bytes, size_t size)
{
    if (call_fails(false)) {
        return -1;
    }
    return __real_read(descriptor, bytes, size > 1 && fails(FAIL_SHORT) ? size / 2 : size);
}

size_t __real_fread(void *bytes, size_t size, size_t count, FILE *file);
size_t __wrap_fread(void *bytes, size_t size, size_t count, FILE *file);
size_t __wrap_fread(void *bytes, size_t size, size_t count, FILE *file)
{
    return __real_fread(bytes, size, count > 1 && fails(FAIL_SHORT) ? count / 2 : count, file);
}

size_t __real_fwrite(const void *bytes, size_t size, size_t count, FILE *file);
size_t __wrap_fwrite(const void *bytes, size_t size, size_t count, FILE *file);
size_t __wrap_fwrite(const void *bytes, size_t size, size_t count, FILE *file)
{
    if (file == stdout || file == stderr) {
        return __real_fwrite(bytes, size, count, file);
    }
    if (call_fails(true)) {
        return 0;
    }
    return __real_fwrite(bytes, size, fails(FAIL_SHORT) ? count / 2 : count, file);
}
