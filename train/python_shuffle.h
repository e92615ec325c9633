/*
 * Python's random.seed(n); random.shuffle(list): CoreNet and lm-eval choose the questions of
 * a limited evaluation with it, so a limit here takes the same questions. The generator is
 * MT19937 (Matsumoto and Nishimura 1998), seeded by key array as CPython does for an integer.
 */
#ifndef EG_TRAIN_PYTHON_SHUFFLE_H
#define EG_TRAIN_PYTHON_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* Fill order[count] with 0..count-1 as Python shuffles list(range(count)). count < 2^32. */
void eg_python_shuffle(uint64_t seed, size_t *order, size_t count);

#endif
