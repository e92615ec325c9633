#include "model/kernels/embedding.h"

#include "model/base/threads.h"
#include "model/kernels/gemm.h"
#include "model/kernels/row_scale.h"

static void gather_rows(const eg_matrix *table, const int32_t *ids, size_t n, float *out)
{
    const size_t dim = table->columns;
    const size_t stride = dim * eg_dtype_size(table->dtype);
    const unsigned char *bytes = table->data;
#pragma omp parallel for schedule(static) if (eg_worth_threads(n * dim))
    for (size_t t = 0; t < n; t++) {
        eg_widen(out + t * dim, bytes + (size_t)ids[t] * stride, table->dtype, dim);
    }
}

static void gather_columns(const eg_graft *graft, size_t vocab, const int32_t *ids, size_t n,
                           float *down)
{
    for (size_t t = 0; t < n; t++) {
        for (size_t r = 0; r < graft->rank; r++) {
            down[t * graft->rank + r] = graft->a[r * vocab + (size_t)ids[t]];
        }
    }
}

void eg_embedding_forward(const eg_matrix *table, const eg_graft *graft, const int32_t *ids,
                          size_t n, float *out, const eg_embedding_saved *saved, float *low)
{
    const size_t dim = table->columns;
    if (graft == NULL) {
        gather_rows(table, ids, n, out);
        return;
    }
    float *down = saved->down != NULL ? saved->down : low;
    float *product = graft->row_scale != NULL && saved->product != NULL ? saved->product : out;
    gather_rows(table, ids, n, product);
    gather_columns(graft, table->rows, ids, n, down);
    eg_gemm_forward(down, graft->b, product, n, graft->rank, dim, graft->scale, 1.0f);
    if (graft->row_scale != NULL) {
        eg_row_scale(product, graft->row_scale, n, dim, out);
    }
}

void eg_embedding_backward(const eg_matrix *table, const eg_graft *graft, const int32_t *ids,
                           size_t n, float *dout, const eg_embedding_saved *saved, float *low)
{
    const size_t dim = table->columns;
    if (graft->row_scale != NULL) {
        eg_row_scale_backward(dout, (eg_row_scale_input){.wide = saved->product}, graft->row_scale,
                              graft->row_norm, n, dim, dout, graft->dm);
    }
    if (graft->db != NULL) {
        eg_gemm_weight(dout, saved->down, graft->db, n, graft->rank, dim, graft->scale, 1.0f);
    }
    if (graft->da == NULL) {
        return;
    }
    eg_gemm_input(dout, graft->b, low, n, graft->rank, dim, graft->scale, 0.0f);
    for (size_t t = 0; t < n; t++) {
        for (size_t r = 0; r < graft->rank; r++) {
            graft->da[r * table->rows + (size_t)ids[t]] += low[t * graft->rank + r];
        }
    }
}
