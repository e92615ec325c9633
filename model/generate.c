#include "model/generate.h"

#include "model/base/memory.h"
#include "model/base/usage.h"
#include "model/forward.h"

enum { PROMPT_CHUNK = 512 }; /* prompt tokens run at a time */

struct eg_generator {
    eg_session *session; /* owned */
    eg_cache *cache;     /* owned */
    float *logits;       /* owned, [vocab] */
    size_t vocab;
    size_t capacity;
    size_t chunk;
};

void eg_generation_deinit(eg_generation *generation)
{
    eg_free(generation->ids);
    *generation = (eg_generation){0};
}

static eg_status open_parts(eg_generator *generator, const eg_model *model, const eg_grafts *grafts,
                            eg_dtype cache, eg_error *err)
{
    const eg_session_options options = {
        .max_tokens = generator->chunk,
        .max_row = generator->capacity,
        .keep = EG_KEEP_NOTHING,
        .head_rows = 1,
    };
    EG_TRY(eg_alloc(&generator->logits, generator->vocab, sizeof *generator->logits, err));
    EG_TRY(eg_session_open(&generator->session, model, grafts, &options, err));
    return eg_cache_new(&generator->cache, model, generator->capacity, cache, err);
}

eg_status eg_generator_open(eg_generator **out, const eg_model *model, const eg_grafts *grafts,
                            const eg_generator_options *options, eg_error *err)
{
    *out = NULL;
    const size_t capacity = options != NULL ? options->capacity : 0;
    const eg_dtype cache = options != NULL ? options->cache : EG_F32;
    const size_t context = model->config.max_context;
    if (capacity > context) {
        return eg_fail(err, EG_USAGE,
                       "generation: a capacity of %zu tokens exceeds the model's context of %zu",
                       capacity, context);
    }
    eg_generator *generator = NULL;
    EG_TRY(eg_alloc(&generator, 1, sizeof *generator, err));
    generator->capacity = capacity > 0 ? capacity : context;
    generator->chunk = generator->capacity < PROMPT_CHUNK ? generator->capacity : PROMPT_CHUNK;
    generator->vocab = model->config.vocab_size;
    const eg_status status = open_parts(generator, model, grafts, cache, err);
    if (status != EG_OK) {
        eg_generator_free(generator);
        return status;
    }
    *out = generator;
    return EG_OK;
}

void eg_generator_free(eg_generator *generator)
{
    if (generator == NULL) {
        return;
    }
    eg_cache_free(generator->cache);
    eg_session_free(generator->session);
    eg_free(generator->logits);
    eg_free(generator);
}

/* Run tokens and leave the logits that follow the last one. */
static eg_status run(eg_generator *generator, const int32_t *ids, size_t count, eg_error *err)
{
    size_t part = 0;
    for (size_t done = 0; done < count; done += part) {
        part = count - done < generator->chunk ? count - done : generator->chunk;
        EG_TRY(eg_forward_cached(generator->session, generator->cache, ids + done, part, err));
    }
    const size_t last = part - 1;
    eg_logits(generator->session, &last, 1, generator->logits);
    return EG_OK;
}

static eg_status check_prompt(const eg_generator *generator, size_t count, eg_error *err)
{
    if (count == 0) {
        return eg_fail(err, EG_USAGE,
                       "prompt: expected at least one token, found none; begin "
                       "with BOS");
    }
    if (count >= generator->capacity) {
        return eg_fail(err, EG_USAGE,
                       "prompt: %zu tokens leave no room in a context of %zu; shorten it", count,
                       generator->capacity);
    }
    return EG_OK;
}

static int is_stop(const eg_generation_options *options, int32_t id)
{
    for (size_t i = 0; i < options->stop_count; i++) {
        if (options->stop_ids[i] == id) {
            return 1;
        }
    }
    return 0;
}

static eg_status append(eg_generation *generation, int32_t id, eg_error *err)
{
    EG_TRY(eg_grow(&generation->ids, &generation->capacity, generation->count + 1,
                   sizeof *generation->ids, err));
    generation->ids[generation->count++] = id;
    return EG_OK;
}

static eg_status continue_prompt(eg_generator *generator, eg_sampler *sampler, size_t room,
                                 const eg_generation_options *options, eg_generation *generation,
                                 eg_error *err)
{
    const size_t limit = options->max_tokens < room ? options->max_tokens : room;
    while (generation->count < limit) {
        int32_t id = 0;
        EG_TRY(eg_sample(sampler, generator->logits, generation->count, &id, err));
        if (is_stop(options, id)) {
            generation->end = EG_END_STOP;
            generation->stop_id = id;
            return EG_OK;
        }
        EG_TRY(append(generation, id, err));
        bool more = true;
        if (options->on_token != NULL) {
            EG_TRY(options->on_token(options->user, id, &more, err));
        }
        if (!more) {
            generation->end = EG_END_CALLER;
            return EG_OK;
        }
        if (generation->count < limit) {
            EG_TRY(run(generator, &id, 1, err));
        }
    }
    generation->end = limit < options->max_tokens ? EG_END_CONTEXT : EG_END_LENGTH;
    return EG_OK;
}

eg_status eg_generate(eg_generator *generator, const int32_t *prompt, size_t count,
                      const eg_generation_options *options, eg_generation *generation,
                      eg_error *err)
{
    generation->count = 0;
    generation->stop_id = -1;
    generation->logits = generator->logits;
    EG_TRY(check_prompt(generator, count, err));
    eg_sampler sampler;
    EG_TRY(eg_sampler_init(&sampler, &options->sampling, generator->vocab, err));
    eg_cache_truncate(generator->cache, 0);
    const double start = eg_usage_seconds();
    eg_status status = run(generator, prompt, count, err);
    const double first = eg_usage_seconds();
    if (status == EG_OK) {
        status = continue_prompt(generator, &sampler, generator->capacity - count, options,
                                 generation, err);
    }
    generation->prompt_seconds = first - start;
    generation->seconds = eg_usage_seconds() - first;
    eg_sampler_deinit(&sampler);
    return status;
}
