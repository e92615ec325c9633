#include "train/python_shuffle.h"

enum { STATE = 624, MIDDLE = 397 };

typedef struct twister {
    uint32_t state[STATE];
    size_t next;
} twister;

static void seed_number(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < STATE; i++) {
        const uint32_t before = t->state[i - 1];
        t->state[i] = 1812433253u * (before ^ (before >> 30)) + i;
    }
    t->next = STATE;
}

/* init_by_array of the reference implementation, which CPython feeds with the 32-bit digits
   of the seed, the lowest first. */
static void seed_array(twister *t, const uint32_t *key, size_t length)
{
    seed_number(t, 19650218u);
    size_t at = 1;
    for (size_t i = 0; i < STATE; i++) {
        const uint32_t before = t->state[at - 1];
        const size_t digit = i % length;
        t->state[at] =
            (t->state[at] ^ ((before ^ (before >> 30)) * 1664525u)) + key[digit] + (uint32_t)digit;
        if (++at == STATE) {
            t->state[0] = t->state[STATE - 1];
            at = 1;
        }
    }
    for (size_t i = 0; i < STATE - 1; i++) {
        const uint32_t before = t->state[at - 1];
        t->state[at] = (t->state[at] ^ ((before ^ (before >> 30)) * 1566083941u)) - (uint32_t)at;
        if (++at == STATE) {
            t->state[0] = t->state[STATE - 1];
            at = 1;
        }
    }
    t->state[0] = 0x80000000u;
}

static void refill(twister *t)
{
    for (size_t i = 0; i < STATE; i++) {
        const uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % STATE] & 0x7FFFFFFFu);
        t->state[i] = t->state[(i + MIDDLE) % STATE] ^ (y >> 1) ^ ((y & 1) ? 0x9908B0DFu : 0);
    }
    t->next = 0;
}

static uint32_t draw(twister *t)
{
    if (t->next == STATE) {
        refill(t);
    }
    uint32_t y = t->state[t->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680u;
    y ^= (y << 15) & 0xEFC60000u;
    return y ^ (y >> 18);
}

/* random._randbelow: as many high bits as the bound has, again until below it. */
static size_t draw_below(twister *t, size_t bound)
{
    unsigned bits = 0;
    while (bits < 32 && bound >> bits != 0) {
        bits++;
    }
    size_t value = 0;
    do {
        value = draw(t) >> (32 - bits);
    } while (value >= bound);
    return value;
}

void eg_python_shuffle(uint64_t seed, size_t *order, size_t count)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    twister t;
    seed_array(&t, key, key[1] != 0 ? 2 : 1);
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (size_t i = count; i-- > 1;) {
        const size_t j = draw_below(&t, i + 1);
        const size_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}
