/*
 * Files that are not what their name says: what a failed download or a wrong copy leaves.
 * Loaders ask here when a file is not of their format, so that the message can say more.
 */
#ifndef EG_MODEL_BASE_FOREIGN_H
#define EG_MODEL_BASE_FOREIGN_H

#include <stddef.h>

/* What the first bytes of a file look like, with what to do about it ("a Git LFS pointer;
   fetch the file itself with git lfs pull"), or NULL. */
const char *eg_foreign_describe(const void *bytes, size_t length);

#endif
