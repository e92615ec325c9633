/*
 * What stands under some paths: the files with a hash of each, for comparing what a failure left
 * with what was there before and what a success leaves.
 */
#ifndef EG_TESTS_FAILING_TREE_H
#define EG_TESTS_FAILING_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TREE_FILES = 128, TREE_NAME = 160 };

typedef struct tree {
    size_t count;
    struct tree_file {
        char path[TREE_NAME];
        uint64_t hash;
    } files[TREE_FILES];
} tree;

void tree_read(tree *out, const char *const *paths, size_t count);

/* Say what is wrong with what a failure left (NULL: nothing): every file is as it was before or
   as a success leaves it, no temporary is left (unless `untidy`), a directory that was published
   is complete. */
const char *tree_judge(const tree *left, const tree *before, const tree *good, bool untidy);

/* The path of a file that is not the same in both, or NULL. */
const char *tree_difference(const tree *left, const tree *good);

#endif
