#include "model/kernels/bf16_gemm.h"

#include <omp.h>

#include "model/base/memory.h"
#include "model/base/threads.h"
#include "model/kernels/bf16_kernel.h"

enum {
    K_BLOCK = 1280, /* of k at a time: a group of panels stays in the first caches */
    CHUNK = 8,      /* groups that are packed at a time: neighbours in B's rows when it lies
                       transposed, few enough for the outer cache */
    GROUP_ROWS = EG_BF16_GROUP * EG_BF16_PANEL,
    K_BESIDE = 256,     /* of k of short terms that go along with a block of a long one */
    MOST_STRETCHES = 4, /* of k that go together */
    WORKSPACE = CHUNK * GROUP_ROWS * (K_BLOCK + K_BESIDE) /* numbers, for a thread */
};

static size_t round_up(size_t value, size_t step)
{
    return (value + step - 1) / step * step;
}

size_t eg_bf16_padded(size_t k)
{
    return round_up(k, EG_BF16_K_STEP);
}

size_t eg_bf16_packed_bytes(size_t n, size_t k)
{
    size_t count = 0;
    const bool fits = eg_size_mul(round_up(n, EG_BF16_PANEL), eg_bf16_padded(k), &count) &&
                      eg_size_mul(count, sizeof(uint16_t), &count);
    return fits ? count : SIZE_MAX;
}

void eg_bf16_pack_all(eg_bf16_kernel kernel, const eg_bf16_source *source, uint16_t *out)
{
    const size_t padded = eg_bf16_padded(source->k);
    const size_t panels = round_up(source->n, EG_BF16_PANEL) / EG_BF16_PANEL;
    const size_t step = CHUNK * EG_BF16_GROUP;
#pragma omp parallel for schedule(static) if (eg_worth_threads(source->n * source->k))
    for (size_t panel = 0; panel < panels; panel += step) {
        const eg_bf16_piece piece = {
            .n0 = panel * EG_BF16_PANEL,
            .panels = eg_smaller(panels - panel, step),
            .pairs = padded / 2,
            .out = out + panel * EG_BF16_PANEL * padded,
            .stride = EG_BF16_PANEL * padded,
        };
        eg_bf16_kernels[kernel].pack(source, &piece);
    }
}

void eg_bf16_round(eg_bf16_kernel kernel, const float *a, size_t m, size_t k, uint16_t *high,
                   uint16_t *low)
{
    const size_t padded = eg_bf16_padded(k);
#pragma omp parallel for schedule(static) if (eg_worth_threads(m * k))
    for (size_t i = 0; i < m; i++) {
        eg_bf16_kernels[kernel].round(a + i * k, k, padded, high + i * padded,
                                      low != NULL ? low + i * padded : NULL);
    }
}

size_t eg_bf16_workspace(void)
{
    return eg_threads_count() * WORKSPACE;
}

/* What one thread computes: some rows of C and some groups of its columns. */
typedef struct share {
    const eg_bf16_kernel_entry *kernel;
    size_t row_begin, row_end;
    size_t group_begin, group_end;
    size_t n;
    float *c;
    uint16_t *workspace; /* of this thread */
} share;

/* Some of a term's k. */
typedef struct stretch {
    const eg_bf16_term *term;
    size_t from, count;
} stretch;

/* Stretches that a block of C is summed over while it is in the cache: the products with a frozen
   weight and with an adapter's factor in one pass over C. */
typedef struct pass {
    stretch stretches[MOST_STRETCHES];
    size_t count;
    bool packed; /* all of B is packed ahead */
} pass;

/* Where the next pass begins. */
typedef struct cursor {
    const eg_bf16_term *term, *end;
    size_t from;
} cursor;

static bool next_pass(cursor *at, pass *next)
{
    size_t sum = 0;
    *next = (pass){.packed = true};
    while (at->term < at->end && next->count < MOST_STRETCHES) {
        const size_t padded = eg_bf16_padded(at->term->b.source.k);
        const size_t count = eg_smaller(padded - at->from, K_BLOCK);
        if (sum > 0 && sum + count > K_BLOCK + K_BESIDE) {
            break;
        }
        next->stretches[next->count++] = (stretch){at->term, at->from, count};
        next->packed = next->packed && at->term->b.packed != NULL;
        sum += count;
        at->from += count;
        if (at->from == padded) {
            at->from = 0;
            at->term++;
        }
    }
    return next->count > 0;
}

/* Adjacent groups of B over the stretches of a pass, in packed form. */
typedef struct panels {
    size_t group_begin, group_end;
    const uint16_t *data[MOST_STRETCHES]; /* of the first group's first pair of the stretch */
    size_t stride[MOST_STRETCHES];
} panels;

static panels find_panels(const share *s, const pass *p, size_t group)
{
    const size_t last = p->packed ? s->group_end : eg_smaller(group + CHUNK, s->group_end);
    panels found = {.group_begin = group, .group_end = last};
    uint16_t *room = s->workspace;
    for (size_t i = 0; i < p->count; i++) {
        const stretch *k = &p->stretches[i];
        const eg_bf16_operand *b = &k->term->b;
        const size_t padded = eg_bf16_padded(b->source.k);
        if (b->packed != NULL) {
            found.stride[i] = padded * EG_BF16_PANEL;
            found.data[i] = b->packed + group * GROUP_ROWS * padded + k->from * EG_BF16_PANEL;
            continue;
        }
        const eg_bf16_piece piece = {
            .n0 = group * GROUP_ROWS,
            .panels = (last - group) * EG_BF16_GROUP,
            .k0 = k->from,
            .pairs = k->count / 2,
            .out = room,
            .stride = k->count * EG_BF16_PANEL,
        };
        s->kernel->pack(&b->source, &piece);
        found.stride[i] = piece.stride;
        found.data[i] = room;
        room += piece.panels * piece.stride;
    }
    return found;
}

/* Rows of C in one group of its columns, summed over a stretch for all of the term's parts of A. */
static void multiply_group(const share *s, const stretch *k, eg_bf16_block block, bool accumulate)
{
    const size_t padded = eg_bf16_padded(k->term->b.source.k);
    const size_t row = (size_t)(block.c - s->c) / s->n;
    block.a_stride = padded;
    block.pairs = k->count / 2;
    for (size_t part = 0; part < 2 && k->term->a[part] != NULL; part++) {
        block.a = k->term->a[part] + row * padded + k->from;
        block.accumulate = accumulate || part > 0;
        s->kernel->block(&block);
    }
}

static void multiply_rows(const share *s, const pass *p, const panels *b, size_t row, size_t rows,
                          bool accumulate)
{
    for (size_t group = b->group_begin; group < b->group_end; group++) {
        const size_t first = group * GROUP_ROWS;
        const size_t columns = eg_smaller(s->n - first, GROUP_ROWS);
        eg_bf16_block block = {
            .rows = rows,
            .panels = (columns + EG_BF16_PANEL - 1) / EG_BF16_PANEL,
            .c = s->c + row * s->n + first,
            .c_stride = s->n,
            .columns = columns,
        };
        for (size_t i = 0; i < p->count; i++) {
            block.b = b->data[i] + (group - b->group_begin) * EG_BF16_GROUP * b->stride[i];
            block.b_stride = b->stride[i];
            multiply_group(s, &p->stretches[i], block, accumulate || i > 0);
        }
    }
}

static void multiply_pass(const share *s, const pass *p, bool accumulate)
{
    for (size_t group = s->group_begin; group < s->group_end;) {
        const panels b = find_panels(s, p, group);
        for (size_t row = s->row_begin; row < s->row_end; row += s->kernel->row_block) {
            multiply_rows(s, p, &b, row, eg_smaller(s->row_end - row, s->kernel->row_block),
                          accumulate);
        }
        group = b.group_end;
    }
}

/* Threads share C's columns, or its rows where there are few columns. */
static share share_of(size_t m, size_t n, size_t thread, size_t threads)
{
    const size_t groups = (n + GROUP_ROWS - 1) / GROUP_ROWS;
    if (groups >= 2 * threads || m < 2 * threads) {
        return (share){.row_end = m,
                       .group_begin = groups * thread / threads,
                       .group_end = groups * (thread + 1) / threads};
    }
    return (share){.row_begin = m * thread / threads,
                   .row_end = m * (thread + 1) / threads,
                   .group_end = groups};
}

void eg_bf16_multiply(eg_bf16_kernel kernel, const eg_bf16_term *terms, size_t count, size_t m,
                      size_t n, float *c, bool accumulate, uint16_t *workspace)
{
    /* Each element of C belongs to one thread, which goes through k in order. */
#pragma omp parallel if (eg_worth_threads(m * n * terms[0].b.source.k / 16))
    {
        const size_t thread = (size_t)omp_get_thread_num();
        share s = share_of(m, n, thread, (size_t)omp_get_num_threads());
        s.kernel = &eg_bf16_kernels[kernel];
        s.n = n;
        s.c = c;
        s.workspace = workspace + thread * WORKSPACE;
        cursor at = {.term = terms, .end = terms + count};
        bool more = accumulate;
        for (pass p; next_pass(&at, &p); more = true) {
            multiply_pass(&s, &p, more);
        }
    }
}
