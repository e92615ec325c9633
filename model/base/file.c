#define _GNU_SOURCE
#include "model/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mapping_guard.h"
#include "model/base/memory.h"

static eg_status fail_errno(eg_error *err, eg_status status, const char *path, const char *what)
{
    return eg_fail(err, status, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* Open a regular file for reading and say how large it is. */
static eg_status open_regular(int *descriptor, struct stat *info, const char *path, eg_error *err)
{
    /* Without waiting: a FIFO that nobody writes to would be waited for for ever. */
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*descriptor < 0) {
        return fail_errno(err, EG_INPUT, path, "open");
    }
    if (fstat(*descriptor, info) != 0) {
        fail_errno(err, EG_INPUT, path, "inspect");
    } else if (!S_ISREG(info->st_mode)) {
        eg_fail(err, EG_INPUT, "%s: expected a regular file, found %s", path,
                S_ISDIR(info->st_mode) ? "a directory" : "something else");
    } else {
        return EG_OK;
    }
    close(*descriptor);
    return EG_INPUT;
}

static eg_status read_all(int descriptor, char *bytes, size_t size, const char *path, eg_error *err)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(descriptor, bytes + done, size - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_errno(err, EG_INPUT, path, "read");
        }
        if (got == 0) {
            return eg_fail(err, EG_INPUT, "%s: the file became shorter while it was read", path);
        }
        done += (size_t)got;
    }
    return EG_OK;
}

eg_status eg_file_read(eg_text *text, const char *path, size_t limit, eg_error *err)
{
    int descriptor = -1;
    struct stat info;
    EG_TRY(open_regular(&descriptor, &info, path, err));
    const size_t size = (size_t)info.st_size;
    eg_status status = EG_OK;
    if (size > limit) {
        status = eg_fail(err, EG_INPUT, "%s: %zu bytes, more than the %zu expected at most here",
                         path, size, limit);
    }
    eg_text_clear(text);
    if (status == EG_OK) {
        status = eg_grow(&text->bytes, &text->capacity, size + 1, 1, err);
    }
    if (status == EG_OK) {
        status = read_all(descriptor, text->bytes, size, path, err);
        text->length = size;
        text->bytes[size] = '\0';
    }
    if (status != EG_OK) {
        eg_text_deinit(text);
    }
    close(descriptor);
    return status;
}

eg_status eg_file_stream(FILE **stream, const char *path, eg_error *err)
{
    int descriptor = -1;
    struct stat info;
    EG_TRY(open_regular(&descriptor, &info, path, err));
    *stream = fdopen(descriptor, "rb");
    if (*stream == NULL) {
        fail_errno(err, EG_FAILED, path, "open");
        close(descriptor);
        return EG_FAILED;
    }
    return EG_OK;
}

eg_status eg_file_map(eg_mapping *mapping, const char *path, eg_error *err)
{
    int descriptor = -1;
    struct stat info;
    *mapping = (eg_mapping){0};
    EG_TRY(open_regular(&descriptor, &info, path, err));
    const size_t size = (size_t)info.st_size;
    if (size > 0) {
        void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (bytes == MAP_FAILED) {
            fail_errno(err, EG_FAILED, path, "map");
            close(descriptor);
            return EG_FAILED;
        }
        *mapping = (eg_mapping){.bytes = bytes,
                                .size = size,
                                .device = info.st_dev,
                                .inode = info.st_ino,
                                .seconds = info.st_mtim.tv_sec,
                                .nanoseconds = info.st_mtim.tv_nsec};
    }
    close(descriptor);
    return EG_OK;
}

void eg_file_unmap(eg_mapping *mapping)
{
    if (mapping->bytes != NULL) {
        union {
            const unsigned char *bytes;
            void *memory;
        } address = {.bytes = mapping->bytes};
        munmap(address.memory, mapping->size);
    }
    *mapping = (eg_mapping){0};
}

eg_status eg_file_unchanged(const eg_mapping *mapping, const char *path, eg_error *err)
{
    struct stat now;
    if (mapping->inode == 0 || stat(path, &now) != 0 || now.st_dev != mapping->device ||
        now.st_ino != mapping->inode) {
        return EG_OK;
    }
    if ((size_t)now.st_size == mapping->size && now.st_mtim.tv_sec == mapping->seconds &&
        now.st_mtim.tv_nsec == mapping->nanoseconds) {
        return EG_OK;
    }
    return eg_fail(err, EG_INPUT,
                   "%s: the file was written to while it was in use (%zu bytes, now %zu); nothing "
                   "more is saved; put the file back as it was and run again",
                   path, mapping->size, (size_t)now.st_size);
}

eg_status eg_directory_flush_parent(const char *path, eg_error *err)
{
    char *parent = NULL;
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        EG_TRY(eg_copy_string(&parent, ".", err));
    } else {
        EG_TRY(eg_copy_bytes(&parent, path, slash == path ? 1 : (size_t)(slash - path), err));
    }
    const int descriptor = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    eg_status status = EG_OK;
    /* Some file systems refuse to flush a directory with EINVAL; there is nothing more to do. */
    if (descriptor < 0 || (fsync(descriptor) != 0 && errno != EINVAL)) {
        status = fail_errno(err, EG_FAILED, parent, "flush");
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    eg_free(parent);
    return status;
}

static void output_release(eg_output *output)
{
    eg_free(output->path);
    eg_free(output->temporary);
    *output = (eg_output){0};
}

eg_status eg_output_open(eg_output *output, const char *path, eg_error *err)
{
    *output = (eg_output){0};
    eg_text name = {0};
    eg_status status = eg_copy_string(&output->path, path, err);
    if (status == EG_OK) {
        status = eg_text_format(&name, err, "%s.partial", path);
    }
    output->temporary = name.bytes;
    if (status == EG_OK) {
        unlink(output->temporary); /* of a crash; nor is a link followed that stands there */
        output->stream = fopen(output->temporary, "wbxe");
        if (output->stream == NULL) {
            status = fail_errno(err, EG_FAILED, output->temporary, "create");
        }
    }
    if (status != EG_OK) {
        output_release(output);
    }
    return status;
}

eg_status eg_output_write(eg_output *output, const void *bytes, size_t length, eg_error *err)
{
    if (length > 0 && fwrite(bytes, 1, length, output->stream) != length) {
        return fail_errno(err, EG_FAILED, output->temporary, "write");
    }
    return EG_OK;
}

eg_status eg_output_commit(eg_output *output, eg_error *err)
{
    eg_status status = eg_mapping_guard_check(err);
    if (status == EG_OK && (fflush(output->stream) != 0 || fsync(fileno(output->stream)) != 0)) {
        status = fail_errno(err, EG_FAILED, output->temporary, "write");
    }
    if (fclose(output->stream) != 0 && status == EG_OK) {
        status = fail_errno(err, EG_FAILED, output->temporary, "close");
    }
    output->stream = NULL;
    if (status == EG_OK && rename(output->temporary, output->path) != 0) {
        status = fail_errno(err, EG_FAILED, output->path, "rename the finished file to this name");
    }
    if (status == EG_OK) {
        status = eg_directory_flush_parent(output->path, err);
        output_release(output);
        return status;
    }
    eg_output_abandon(output);
    return status;
}

void eg_output_abandon(eg_output *output)
{
    if (output->stream != NULL) {
        fclose(output->stream);
    }
    if (output->temporary != NULL) {
        unlink(output->temporary);
    }
    output_release(output);
}

eg_status eg_file_write(const char *path, const void *bytes, size_t length, eg_error *err)
{
    eg_output output;
    EG_TRY(eg_output_open(&output, path, err));
    const eg_status status = eg_output_write(&output, bytes, length, err);
    if (status != EG_OK) {
        eg_output_abandon(&output);
        return status;
    }
    return eg_output_commit(&output, err);
}

/* Through a small window: a mapping would count as memory of this process. */
eg_status eg_file_copy(const char *from, const char *to, eg_error *err)
{
    char piece[1 << 16];
    FILE *file = NULL;
    eg_output output;
    EG_TRY(eg_file_stream(&file, from, err));
    eg_status status = eg_output_open(&output, to, err);
    if (status != EG_OK) {
        fclose(file);
        return status;
    }
    for (size_t got = sizeof piece; status == EG_OK && got == sizeof piece;) {
        got = fread(piece, 1, sizeof piece, file);
        status = ferror(file) ? fail_errno(err, EG_FAILED, from, "read")
                              : eg_output_write(&output, piece, got, err);
    }
    fclose(file);
    if (status != EG_OK) {
        eg_output_abandon(&output);
        return status;
    }
    return eg_output_commit(&output, err);
}

bool eg_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool eg_path_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

eg_status eg_directory_make(const char *path, eg_error *err)
{
    char *copy = NULL;
    EG_TRY(eg_copy_string(&copy, path, err));
    eg_status status = EG_OK;
    for (char *at = copy + (copy[0] == '/'); status == EG_OK; at++) {
        if (*at != '/' && *at != '\0') {
            continue;
        }
        const char ended = *at;
        *at = '\0';
        if (copy[0] != '\0' && mkdir(copy, 0777) != 0) {
            const int reason = errno; /* the look below may change it */
            if (!eg_path_is_directory(copy)) {
                errno = reason;
                status = fail_errno(err, EG_FAILED, copy, "make this directory");
            }
        }
        *at = ended;
        if (ended == '\0') {
            break;
        }
    }
    eg_free(copy);
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

eg_status eg_directory_remove(const char *path, eg_error *err)
{
    struct stat info;
    if (lstat(path, &info) != 0 && errno == ENOENT) {
        return EG_OK;
    }
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        return fail_errno(err, EG_FAILED, path, "remove this directory");
    }
    return EG_OK;
}

eg_status eg_directory_visit(const char *directory, eg_visit *visit, void *user, eg_error *err)
{
    DIR *listing = opendir(directory);
    if (listing == NULL) {
        return fail_errno(err, EG_FAILED, directory, "list");
    }
    eg_status status = EG_OK;
    const struct dirent *entry = NULL;
    do {
        errno = 0; /* readdir says no more about its end */
        entry = readdir(listing);
        if (entry == NULL && errno != 0) {
            status = fail_errno(err, EG_FAILED, directory, "list");
        } else if (entry != NULL && strcmp(entry->d_name, ".") != 0 &&
                   strcmp(entry->d_name, "..") != 0) {
            status = visit(directory, entry->d_name, user, err);
        }
    } while (entry != NULL && status == EG_OK);
    closedir(listing);
    return status;
}

eg_status eg_directory_flush(const char *path, eg_error *err)
{
    EG_TRY(eg_mapping_guard_check(err));
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        return fail_errno(err, EG_FAILED, path, "open");
    }
    const bool flushed = fsync(descriptor) == 0 || errno == EINVAL;
    close(descriptor);
    return flushed ? EG_OK : fail_errno(err, EG_FAILED, path, "flush");
}

eg_status eg_directory_publish(const char *from, const char *to, eg_error *err)
{
    EG_TRY(eg_directory_flush(from, err));
    if (rename(from, to) != 0) {
        return fail_errno(err, EG_FAILED, to, "rename the finished directory to this name");
    }
    return eg_directory_flush_parent(to, err);
}

eg_status eg_path_join(eg_text *text, const char *directory, const char *name, eg_error *err)
{
    eg_text_clear(text);
    const size_t length = strlen(directory);
    eg_status status = eg_text_add(text, directory, length, err);
    if (status == EG_OK && length > 0 && directory[length - 1] != '/') {
        status = eg_text_add(text, "/", 1, err);
    }
    if (status == EG_OK) {
        status = eg_text_add_string(text, name, err);
    }
    if (status != EG_OK) {
        eg_text_deinit(text);
    }
    return status;
}
