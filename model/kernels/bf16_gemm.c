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
    WORKSPACE = CHUNK * GROUP_ROWS * K_BLOCK /* numbers, for a thread */
};

static size_t round_up(size_t value, size_t step)
{
    return (value + step - 1) / step * step;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
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
            .panels = smaller(panels - panel, step),
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

/* Adjacent groups of B for one block of k: their panels in packed form. */
typedef struct panels {
    const uint16_t *data; /* of the first group's first pair of the block */
    size_t stride;
    size_t group_begin, group_end;
    size_t from, count; /* of k */
} panels;

static panels find_panels(const share *s, const eg_bf16_operand *b, size_t group, size_t from)
{
    const size_t padded = eg_bf16_padded(b->source.k);
    panels found = {.group_begin = group, .from = from, .count = smaller(padded - from, K_BLOCK)};
    if (b->packed != NULL) {
        found.group_end = s->group_end;
        found.stride = padded * EG_BF16_PANEL;
        found.data = b->packed + group * GROUP_ROWS * padded + from * EG_BF16_PANEL;
        return found;
    }
    found.group_end = smaller(group + CHUNK, s->group_end);
    found.stride = found.count * EG_BF16_PANEL;
    found.data = s->workspace;
    const eg_bf16_piece piece = {
        .n0 = group * GROUP_ROWS,
        .panels = (found.group_end - group) * EG_BF16_GROUP,
        .k0 = from,
        .pairs = found.count / 2,
        .out = s->workspace,
        .stride = found.stride,
    };
    s->kernel->pack(&b->source, &piece);
    return found;
}

/* A block of rows against the panels, for all of the term's parts of A. */
static void multiply_rows(const share *s, const eg_bf16_term *term, const panels *b, size_t row,
                          size_t rows, bool accumulate)
{
    const size_t padded = eg_bf16_padded(term->b.source.k);
    for (size_t group = b->group_begin; group < b->group_end; group++) {
        const size_t first = group * GROUP_ROWS;
        const size_t columns = smaller(s->n - first, GROUP_ROWS);
        for (size_t part = 0; part < 2 && term->a[part] != NULL; part++) {
            const eg_bf16_block block = {
                .a = term->a[part] + row * padded + b->from,
                .a_stride = padded,
                .rows = rows,
                .b = b->data + (group - b->group_begin) * EG_BF16_GROUP * b->stride,
                .b_stride = b->stride,
                .panels = (columns + EG_BF16_PANEL - 1) / EG_BF16_PANEL,
                .pairs = b->count / 2,
                .c = s->c + row * s->n + first,
                .c_stride = s->n,
                .columns = columns,
                .accumulate = accumulate || part > 0,
            };
            s->kernel->block(&block);
        }
    }
}

static void multiply_term(const share *s, const eg_bf16_term *term, bool accumulate)
{
    const size_t padded = eg_bf16_padded(term->b.source.k);
    for (size_t from = 0; from < padded; from += K_BLOCK) {
        for (size_t group = s->group_begin; group < s->group_end;) {
            const panels b = find_panels(s, &term->b, group, from);
            for (size_t row = s->row_begin; row < s->row_end; row += s->kernel->row_block) {
                const size_t rows = smaller(s->row_end - row, s->kernel->row_block);
                multiply_rows(s, term, &b, row, rows, accumulate || from > 0);
            }
            group = b.group_end;
        }
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
        for (size_t i = 0; i < count; i++) {
            multiply_term(&s, &terms[i], accumulate || i > 0);
        }
    }
}
