/*
 * A machine that fails on demand: the Nth allocation, or the Nth call to the system, of whatever
 * runs between failing_start and failing_stop.
 *
 * Without sanitizers the program's malloc and its kin are ours, so the allocations of every
 * library count, and live blocks are counted too. Under sanitizers the linker wraps the calls of
 * our own code, jansson is reached through its hook and zstd through its custom memory, and leaks
 * are the sanitizer's to find. Allocations of the OpenMP runtime, of OpenBLAS and inside
 * SentencePiece never fail: these end the process themselves when memory runs out. What
 * SentencePiece will need is made sure of before it is called (model/tokenizer.cc).
 */
#ifndef EG_TESTS_FAILING_H
#define EG_TESTS_FAILING_H

#include <stdbool.h>
#include <stddef.h>

typedef enum failing_kind {
    FAIL_NOTHING,
    FAIL_MEMORY, /* allocations, and arenas from the system */
    FAIL_CALLS,  /* calls that open, read, write, flush, rename, make, remove and list */
    FAIL_WRITES, /* of these, only those that change a disk */
    FAIL_SHORT   /* reads and writes move less than they were asked to: no failure by itself of
                    a read, a full disk of a write */
} failing_kind;

/* Fail the nth event of this kind, from 0, with `error` in errno; with `stay` all after it too. */
void failing_start(failing_kind kind, size_t nth, int error, bool stay);

/* Stop failing. Whether anything failed. */
bool failing_stop(void);

/* Blocks that are allocated now; 0 under sanitizers. */
size_t failing_live(void);

/* Once, before anything else. */
void failing_init(void);

#endif
