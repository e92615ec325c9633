#include "data/split.h"

#include <math.h>
#include <stdbool.h>

#include "model/base/memory.h"
#include "model/base/random.h"

void eg_selection_deinit(eg_selection *selection)
{
    eg_free(selection->rows);
    *selection = (eg_selection){0};
}

eg_status eg_select_all(eg_selection *selection, size_t rows, eg_error *err)
{
    *selection = (eg_selection){0};
    EG_TRY(eg_alloc(&selection->rows, rows, sizeof *selection->rows, err));
    selection->count = rows;
    for (size_t i = 0; i < rows; i++) {
        selection->rows[i] = i;
    }
    return EG_OK;
}

/* Selection sampling (Knuth, TAOCP 2, 3.4.2 S): whether element i of `count` is one of the
   `wanted`, of which `taken` were drawn before it. */
static bool draw(uint64_t key, size_t i, size_t count, size_t wanted, size_t taken)
{
    return eg_random_uniform(key, i) * (double)(count - i) < (double)(wanted - taken);
}

void eg_select_some(eg_selection *selection, size_t limit, uint64_t seed)
{
    const uint64_t key = eg_key_string(seed, "limit");
    if (limit == 0 || limit >= selection->count) {
        return;
    }
    size_t taken = 0;
    for (size_t i = 0; taken < limit; i++) {
        if (draw(key, i, selection->count, limit, taken)) {
            selection->rows[taken++] = selection->rows[i];
        }
    }
    selection->count = limit;
}

static void deal(eg_selection *training, eg_selection *validation, size_t rows, size_t wanted,
                 uint64_t key)
{
    for (size_t i = 0; i < rows; i++) {
        eg_selection *to = draw(key, i, rows, wanted, validation->count) ? validation : training;
        to->rows[to->count++] = i;
    }
}

eg_status eg_split(eg_selection *training, eg_selection *validation, size_t rows, double fraction,
                   uint64_t seed, eg_error *err)
{
    *training = *validation = (eg_selection){0};
    if (!(fraction > 0 && fraction < 1)) {
        return eg_fail(err, EG_USAGE,
                       "validation: expected a fraction of the rows between 0 and 1, found %g",
                       fraction);
    }
    const double exact = round(fraction * (double)rows);
    const size_t wanted = exact < 1 ? 1 : (size_t)exact;
    if (wanted >= rows) {
        return eg_fail(err, EG_USAGE,
                       "validation: a fraction of %g of %zu rows leaves none to train on; name a "
                       "validation file, or take a smaller fraction",
                       fraction, rows);
    }
    eg_status status = eg_alloc(&training->rows, rows, sizeof *training->rows, err);
    if (status == EG_OK) {
        status = eg_alloc(&validation->rows, wanted, sizeof *validation->rows, err);
    }
    if (status != EG_OK) {
        eg_selection_deinit(training);
        return status;
    }
    deal(training, validation, rows, wanted, eg_key_string(seed, "validation"));
    return EG_OK;
}
