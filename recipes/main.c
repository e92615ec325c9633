/*
 * elmgraft: reads the command line and the recipe, runs one command, and turns its status into
 * an exit code. Errors go to standard error, each line in the name of the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mapping_guard.h"
#include "model/base/threads.h"
#include "model/kernels/vector.h"
#include "recipes/cli.h"
#include "recipes/command.h"
#include "recipes/overwrite.h"
#include "recipes/printable.h"

typedef struct entry {
    eg_command_bit bit;
    eg_status (*run)(const eg_invocation *run, eg_error *err);
} entry;

static const entry entries[] = {
    {EG_COMMAND_BENCH, eg_command_bench},       {EG_COMMAND_DATA, eg_command_data},
    {EG_COMMAND_EVALUATE, eg_command_evaluate}, {EG_COMMAND_FINETUNE, eg_command_finetune},
    {EG_COMMAND_GENERATE, eg_command_generate}, {EG_COMMAND_INIT, eg_command_init},
    {EG_COMMAND_INSPECT, eg_command_inspect},   {EG_COMMAND_MERGE, eg_command_merge},
};

static void write_log(void *user, eg_log_level level, const char *text)
{
    (void)user;
    eg_printable_message(stderr, level == EG_WARNING ? "warning: " : "", text);
}

/* Lines that continue a message (the source line and its underline) are indented; each other
   line is a message of its own. */
static void show_error(const eg_command *command, const eg_error *err)
{
    const char *line = err->text;
    while (*line != '\0') {
        const size_t length = strcspn(line, "\n");
        if (line[0] == ' ') {
            eg_printable_write(stderr, line, length);
        } else {
            fprintf(stderr, "elmgraft%s%s: ", command != NULL ? " " : "",
                    command != NULL ? command->name : "");
            eg_printable_write(stderr, line, length);
        }
        fputc('\n', stderr);
        line += length + (line[length] == '\n');
    }
}

static eg_status show_help(const eg_command *command, eg_error *err)
{
    eg_text text = {0};
    const eg_status status = eg_help_write(command, &text, err);
    fputs(eg_text_string(&text), stdout);
    eg_text_deinit(&text);
    return status;
}

static eg_status run_command(const eg_command_line *line, eg_error *err)
{
    const eg_log log = {.write = line->flags.quiet ? NULL : write_log};
    /* An operand in brackets is the recipe. */
    const char *path = line->command->operand[0] == '[' ? line->operand : NULL;
    const eg_recipe_request request = {.command = line->command->bit,
                                       .path = path,
                                       .overrides = line->overrides,
                                       .override_count = line->override_count};
    eg_recipe recipe;
    EG_TRY(eg_mapping_guard_install(err));
    EG_TRY(eg_vector_use_environment(err));
    EG_TRY(eg_recipe_load(&recipe, &request, err));
    const eg_invocation run = {line->operand, line->flags, &recipe, &log};
    eg_threads_use(recipe.compute.threads);
    eg_status status =
        line->flags.overwrite ? eg_overwrite_check(&recipe, line->command->bit, err) : EG_OK;
    for (size_t i = 0; status == EG_OK && i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].bit == line->command->bit) {
            status = entries[i].run(&run, err);
        }
    }
    if (status == EG_OK) {
        status = eg_mapping_guard_check(err); /* what was shown is worthless */
    }
    eg_recipe_deinit(&recipe);
    return status;
}

static eg_status run_line(const eg_command_line *line, int argc, eg_error *err)
{
    if (line->flags.version) {
        puts("elmgraft " EG_VERSION);
        return EG_OK;
    }
    if (line->flags.help || argc < 2) {
        return show_help(line->command, err);
    }
    return run_command(line, err);
}

/* A waiting OpenMP thread spins unless told otherwise, and when anything else wants the cores,
   threads that spin keep threads that work from running: a run can take ten times as long. */
static bool let_waiting_threads_sleep(void)
{
    const char *const settings[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (getenv(settings[i]) != NULL) {
            return false;
        }
    }
    return setenv(settings[0], "passive", 0) == 0;
}

/* OpenBLAS is only called from threads of ours. A pool of its own would idle, and under a limit of
   memory never end: its threads wait for work space. */
static bool keep_blas_from_starting_threads(void)
{
    const char *set = getenv("OPENBLAS_NUM_THREADS");
    return (set == NULL || strcmp(set, "1") != 0) && setenv("OPENBLAS_NUM_THREADS", "1", 1) == 0;
}

/* Both libraries read their settings before main, so they have to be set for a fresh start of the
   program. */
static void settle_threads(char **argv)
{
    const bool sleeping = let_waiting_threads_sleep();
    if (keep_blas_from_starting_threads() || sleeping) {
        execv("/proc/self/exe", argv);
    }
}

/* A standard stream that is closed must stay so: the next file that is opened would take its
   place, and results and messages would be written into it. */
static void keep_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) {
            return;
        }
    }
}

static eg_status finish_output(eg_error *err)
{
    const int failed = ferror(stdout);
    errno = 0;
    return fflush(stdout) != 0 || failed
               ? eg_fail(err, EG_FAILED, "standard output: %s",
                         errno != 0 ? strerror(errno) : "cannot be written")
               : EG_OK;
}

int main(int argc, char **argv)
{
    settle_threads(argv);
    keep_standard_streams();
    /* A reader that goes away or a limit of file size is a failed write, not the program's end. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    eg_error err = {0};
    eg_command_line line;
    eg_status status = eg_command_line_parse(&line, argc, argv, &err);
    if (status == EG_OK) {
        status = run_line(&line, argc, &err);
    }
    if (status == EG_OK) {
        status = finish_output(&err);
    }
    if (status != EG_OK) {
        show_error(line.command, &err);
    }
    eg_command_line_deinit(&line);
    return (int)status;
}
