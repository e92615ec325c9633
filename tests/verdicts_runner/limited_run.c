#include "tests/verdicts_runner/limited_run.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMORY ((size_t)1 << 30)

#ifdef EG_SANITIZED
enum { SECONDS = 600 };
static const bool limit_address_space = false;
#else
enum { SECONDS = 60 };
static const bool limit_address_space = true;
#endif

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Everything that was written to a file, as a string. */
static char *contents(FILE *file)
{
    const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    char *text = calloc(1, (size_t)(size > 0 ? size : 0) + 1);
    rewind(file);
    if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size) {
        perror("verdicts");
        exit(2);
    }
    return text;
}

/* The child: threads are few, so that what they take does not depend on the machine. */
static void become(const char *const *arguments, FILE *out, FILE *err)
{
    const struct rlimit memory = {MEMORY, MEMORY};
    char *copies[16] = {NULL};
    for (size_t i = 0; i < 15 && arguments[i] != NULL; i++) {
        copies[i] = strdup(arguments[i]);
    }
    setenv("OMP_NUM_THREADS", "2", 1);
    setenv("OPENBLAS_NUM_THREADS", "2", 1);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    if (limit_address_space) {
        setrlimit(RLIMIT_AS, &memory);
    }
    execv(copies[0], copies);
    perror(copies[0]);
    _exit(127);
}

/* Wait for the child, and no longer than it may take. */
static int wait_for(pid_t child, struct rusage *usage, bool *late)
{
    const struct timespec pause = {0, 2000000};
    const double start = now();
    int status = 0;
    while (wait4(child, &status, WNOHANG, usage) == 0) {
        if (!*late && now() - start > SECONDS) {
            *late = true;
            kill(child, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
    return status;
}

static void judge(limited_run *run, int status, bool late)
{
    run->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (late) {
        snprintf(run->problem, sizeof run->problem, "took more than %d s", SECONDS);
    } else if (WIFSIGNALED(status)) {
        snprintf(run->problem, sizeof run->problem, "ended by signal %d", WTERMSIG(status));
    } else if (run->code >= 126) {
        snprintf(run->problem, sizeof run->problem, "could not be run");
    } else if (run->peak > MEMORY) {
        snprintf(run->problem, sizeof run->problem, "took more than 1 GiB of memory");
    } else if (strstr(run->err, "Sanitizer") != NULL || strstr(run->err, "runtime error") != NULL) {
        snprintf(run->problem, sizeof run->problem, "a sanitizer found an error");
    }
}

void limited_run_start(limited_run *run, const char *const *arguments)
{
    FILE *out = tmpfile(), *err = tmpfile();
    *run = (limited_run){.code = -1};
    if (out == NULL || err == NULL) {
        perror("verdicts");
        exit(2);
    }
    const double start = now();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        become(arguments, out, err);
    }
    struct rusage usage = {0};
    bool late = false;
    const int status = child > 0 ? wait_for(child, &usage, &late) : 127 << 8;
    run->seconds = now() - start;
    run->peak = (size_t)usage.ru_maxrss << 10;
    run->out = contents(out);
    run->err = contents(err);
    judge(run, status, late);
    fclose(out);
    fclose(err);
}

void limited_run_end(limited_run *run)
{
    free(run->out);
    free(run->err);
    run->out = run->err = NULL;
}

const char *limited_run_program(char *path, size_t size)
{
    char self[512];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *name = strrchr(self, '/');
    if (name != NULL) {
        *name = '\0';
    }
    snprintf(path, size, "%s/../recipes/elmgraft", self);
    return path;
}
