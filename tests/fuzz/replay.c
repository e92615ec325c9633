/*
 * A target's main in the ordinary suite: runs every file of the directories and every file that
 * are named, once each.
 *
 *     fuzz_NAME CORPUS_OR_FILE...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/file.h"
#include "tests/fuzz/fuzz.h"

enum { LARGEST_INPUT = 8 << 20 };

static size_t replayed;

static int replay_file(const char *path)
{
    eg_text text = {0};
    eg_error err = {0};
    if (eg_file_read(&text, path, LARGEST_INPUT, &err) != EG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    fprintf(stderr, "%s\n", path); /* the last one named is the one that crashed */
    LLVMFuzzerTestOneInput((const uint8_t *)eg_text_string(&text), text.length);
    replayed++;
    eg_text_deinit(&text);
    return EXIT_SUCCESS;
}

static int replay_directory(const char *path)
{
    int result = EXIT_SUCCESS;
    DIR *listing = opendir(path);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (!eg_path_is_directory(file) && replay_file(file) != EXIT_SUCCESS) {
            result = EXIT_FAILURE;
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return result;
}

int main(int argc, char **argv)
{
    int result = EXIT_SUCCESS;
    for (int i = 1; i < argc; i++) {
        if ((eg_path_is_directory(argv[i]) ? replay_directory : replay_file)(argv[i]) !=
            EXIT_SUCCESS) {
            result = EXIT_FAILURE;
        }
    }
    printf("%zu inputs replayed\n", replayed);
    return replayed > 0 ? result : EXIT_FAILURE;
}
