#include <math.h>
#include <stddef.h>

#include "model/kernels/attention.h"

/* The key that is the i-th one a query of the span sees. */
static size_t key_row(const eg_span *span, size_t i)
{
    return i < span->prefix_length ? span->prefix_start + i
                                   : span->key_start + i - span->prefix_length;
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * y[i];
    }
    return sum;
}

static size_t column_of(const eg_attention *a, size_t head)
{
    return head / (a->heads / a->kv_heads) * a->head_dim;
}

static double score(const eg_attention *a, const eg_span *span, size_t query, size_t head, size_t i)
{
    const float *q = a->q + (span->query_start + query) * a->q_stride + head * a->head_dim;
    const float *k = a->k + key_row(span, i) * a->k_stride + column_of(a, head);
    return dot(q, k, a->head_dim) / sqrt((double)a->head_dim);
}

static double log_sum_exp(const eg_attention *a, const eg_span *span, size_t query, size_t head)
{
    const size_t seen = span->prefix_length + query + 1;
    double top = -INFINITY;
    double sum = 0.0;
    for (size_t i = 0; i < seen; i++) {
        top = fmax(top, score(a, span, query, head, i));
    }
    for (size_t i = 0; i < seen; i++) {
        sum += exp(score(a, span, query, head, i) - top);
    }
    return top + log(sum);
}

static void forward_query(const eg_attention *a, const eg_span *span, size_t query, size_t head,
                          float *out, float *lse)
{
    const size_t token = span->query_start + query;
    const double shift = log_sum_exp(a, span, query, head);
    float *to = out + token * a->heads * a->head_dim + head * a->head_dim;
    for (size_t j = 0; j < a->head_dim; j++) {
        double sum = 0.0;
        for (size_t i = 0; i < span->prefix_length + query + 1; i++) {
            const float *v = a->v + key_row(span, i) * a->v_stride + column_of(a, head);
            sum += exp(score(a, span, query, head, i) - shift) * v[j];
        }
        to[j] = (float)sum;
    }
    if (lse != NULL) {
        lse[head * a->tokens + token] = (float)shift;
    }
}

void eg_attention_forward_reference(const eg_attention *a, float *out, float *lse)
{
    for (size_t s = 0; s < a->span_count; s++) {
        for (size_t i = 0; i < a->spans[s].length; i++) {
            for (size_t h = 0; h < a->heads; h++) {
                forward_query(a, &a->spans[s], i, h, out, lse);
            }
        }
    }
}

static void backward_pair(const eg_attention *a, const eg_attention_gradient *g,
                          const eg_span *span, size_t query, size_t head, size_t i)
{
    const size_t token = span->query_start + query;
    const size_t key = key_row(span, i);
    const size_t column = column_of(a, head);
    const size_t at = token * a->heads * a->head_dim + head * a->head_dim;
    const float *q = a->q + token * a->q_stride + head * a->head_dim;
    const float *k = a->k + key * a->k_stride + column;
    const float *v = a->v + key * a->v_stride + column;
    const double p = exp(score(a, span, query, head, i) - log_sum_exp(a, span, query, head));
    const double delta = dot(g->out + at, g->dout + at, a->head_dim);
    const double ds = p * (dot(g->dout + at, v, a->head_dim) - delta) / sqrt((double)a->head_dim);
    for (size_t j = 0; j < a->head_dim; j++) {
        g->dq[token * g->d_stride + head * a->head_dim + j] += (float)(ds * k[j]);
        g->dk[key * g->d_stride + column + j] += (float)(ds * q[j]);
        g->dv[key * g->d_stride + column + j] += (float)(p * g->dout[at + j]);
    }
}

static void clear_token(const eg_attention *a, const eg_attention_gradient *g, const eg_span *span,
                        size_t i)
{
    for (size_t j = 0; j < a->heads * a->head_dim; j++) {
        g->dq[(span->query_start + i) * g->d_stride + j] = 0.0f;
    }
    for (size_t j = 0; j < a->kv_heads * a->head_dim; j++) {
        g->dk[(span->key_start + i) * g->d_stride + j] = 0.0f;
        g->dv[(span->key_start + i) * g->d_stride + j] = 0.0f;
    }
}

/* All that one query of a span gives to the gradients. */
static void backward_query(const eg_attention *a, const eg_attention_gradient *g,
                           const eg_span *span, size_t query)
{
    for (size_t h = 0; h < a->heads; h++) {
        for (size_t j = 0; j <= query; j++) {
            backward_pair(a, g, span, query, h, j);
        }
    }
}

void eg_attention_backward_reference(const eg_attention *a, const eg_attention_gradient *g)
{
    for (size_t s = 0; s < a->span_count; s++) {
        const eg_span *span = &a->spans[s];
        for (size_t i = 0; i < span->length; i++) {
            clear_token(a, g, span, i);
        }
        for (size_t i = 0; i < span->length; i++) {
            backward_query(a, g, span, i);
        }
    }
}
