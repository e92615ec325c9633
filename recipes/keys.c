#include "recipes/keys.h"

#include <stdio.h>
#include <string.h>

#include "data/format.h"
#include "data/overlong.h"
#include "data/reader.h"
#include "model/dtype.h"
#include "train/schedule.h"

static const char *const methods[] = {[EG_LORA] = "lora", [EG_DORA] = "dora", NULL};
static const char *const inits[] = {
    [EG_INIT_KAIMING] = "kaiming", [EG_INIT_GAUSSIAN] = "gaussian", NULL};
static const char *const formats[] = {[EG_FORMAT_PREFERENCE] = "preference",
                                      [EG_FORMAT_MESSAGES] = "messages",
                                      [EG_FORMAT_SHAREGPT] = "sharegpt",
                                      [EG_FORMAT_ALPACA] = "alpaca",
                                      [EG_FORMAT_DOLLY] = "dolly",
                                      [EG_FORMAT_PROMPT_COMPLETION] = "prompt-completion",
                                      [EG_FORMAT_TEXT] = "text",
                                      [EG_FORMAT_DETECT] = "auto",
                                      NULL};
static const char *const text_units[] = {[EG_TEXT_DOCUMENT] = "document",
                                         [EG_TEXT_PARAGRAPH] = "paragraph",
                                         [EG_TEXT_LINE] = "line",
                                         NULL};
static const char *const overlongs[] = {[EG_OVERLONG_AUTO] = "auto",
                                        [EG_OVERLONG_DROP] = "drop",
                                        [EG_OVERLONG_CUT_PROMPT] = "cut_prompt",
                                        [EG_OVERLONG_CUT_COMPLETION] = "cut_completion",
                                        [EG_OVERLONG_SPLIT] = "split",
                                        NULL};
static const char *const masks[] = {
    [EG_MASK_COMPLETION] = "completion", [EG_MASK_ALL] = "all", NULL};
static const char *const parts[] = {"prompt", "prompt_no_input", "completion", "text", "system",
                                    "user",   "assistant",       NULL};
static const char *const dtypes[] = {
    [EG_F32] = "float32", [EG_F16] = "float16", [EG_BF16] = "bfloat16", NULL};
static const char *const precisions[] = {"auto", "f32", "f32-split", "bf16", NULL};
const char *const eg_recipe_kernels[] = {"auto",     "amx",       "avx512_bf16",
                                         "openblas", "reference", NULL};
static const char *const benches[] = {"all", "machine", "ceilings", "step", NULL};
static const char *const activations[] = {"save", "recompute", NULL};
static const char *const caches[] = {"f32", "bf16", NULL};
static const char *const memories[] = {"fast", "lean", NULL};

const eg_section eg_sections[] = {
    {"model", "The frozen base model."},
    {"adapter", "What is grafted onto it, in the terms of peft."},
    {"data", "Training and validation rows."},
    {"train", "The training run."},
    {"evaluate", "What `elmgraft evaluate` measures."},
    {"generate", "What `elmgraft generate` writes."},
    {"merge", "What `elmgraft merge` writes."},
    {"init", "The checkpoint that `elmgraft init` makes."},
    {"bench", "What `elmgraft bench` times."},
    {"compute", "How it is computed."},
    {"output", "The run directory."},
    {NULL, NULL},
};

const eg_exclusion eg_exclusions[] = {
    {"train.epochs", "train.steps"},
    {"train.batch_rows", "train.batch_tokens"},
    {"train.warmup_steps", "train.warmup_ratio"},
    {"adapter.targets", "adapter.targets_regex"},
    {"data.validation", "data.validation_fraction"},
    {"init.size", "init.config"},
    {"bench.size", "model.path"},
};
const size_t eg_exclusion_count = sizeof eg_exclusions / sizeof eg_exclusions[0];

/* The offset of a field, refused by the compiler when it is not of that C type. */
#define FIELD(ctype, member)                                                                       \
    (offsetof(eg_recipe, member) + 0 * sizeof((ctype *)0 == &((eg_recipe *)0)->member))

#define BOOL(member, value, ...)                                                                   \
    {                                                                                              \
        .name = #member, .type = EG_KEY_BOOL, .offset = FIELD(bool, member), .fallback = value,    \
        __VA_ARGS__                                                                                \
    }
#define SIZE(member, value, low, high, ...)                                                        \
    {                                                                                              \
        .name = #member, .type = EG_KEY_SIZE, .offset = FIELD(size_t, member), .fallback = value,  \
        .least = low, .most = high, __VA_ARGS__                                                    \
    }
#define REAL(member, value, low, high, ...)                                                        \
    {                                                                                              \
        .name = #member, .type = EG_KEY_REAL, .offset = FIELD(double, member), .fallback = value,  \
        .least = low, .most = high, __VA_ARGS__                                                    \
    }
#define STRING(member, value, ...)                                                                 \
    {                                                                                              \
        .name = #member, .type = EG_KEY_STRING, .offset = FIELD(char *, member),                   \
        .fallback = value, __VA_ARGS__                                                             \
    }
#define PATH(member, ...)                                                                          \
    {                                                                                              \
        .name = #member, .type = EG_KEY_PATH, .offset = FIELD(char *, member), __VA_ARGS__         \
    }
#define CHOICE(member, value, list, ...)                                                           \
    {                                                                                              \
        .name = #member, .type = EG_KEY_CHOICE, .offset = FIELD(int, member), .fallback = value,   \
        .choices = list, __VA_ARGS__                                                               \
    }
#define STRINGS(member, value, ...)                                                                \
    {                                                                                              \
        .name = #member, .type = EG_KEY_STRINGS, .offset = FIELD(eg_strings, member),              \
        .fallback = value, __VA_ARGS__                                                             \
    }
#define SIZES(member, high, ...)                                                                   \
    {                                                                                              \
        .name = #member, .type = EG_KEY_SIZES, .offset = FIELD(eg_sizes, member), .most = high,    \
        __VA_ARGS__                                                                                \
    }
#define NUMBERS(member, low, high, ...)                                                            \
    {                                                                                              \
        .name = #member, .type = EG_KEY_NUMBERS, .offset = FIELD(eg_numbers, member),              \
        .least = low, .most = high, __VA_ARGS__                                                    \
    }
#define NAMES(member, list, ...)                                                                   \
    {                                                                                              \
        .name = #member, .type = EG_KEY_NAMES, .offset = FIELD(eg_names, member), .choices = list, \
        __VA_ARGS__                                                                                \
    }
#define TEMPLATE(member, list, ...)                                                                \
    {                                                                                              \
        .name = #member, .type = EG_KEY_TEMPLATE, .offset = FIELD(eg_template_choice, member),     \
        .choices = list, __VA_ARGS__                                                               \
    }

#define INIT EG_COMMAND_INIT
#define TUNE EG_COMMAND_FINETUNE
#define MERGE EG_COMMAND_MERGE
#define EVAL EG_COMMAND_EVALUATE
#define GEN EG_COMMAND_GENERATE
#define INSPECT EG_COMMAND_INSPECT
#define DATA EG_COMMAND_DATA
#define BENCH EG_COMMAND_BENCH
#define USED .commands =
#define NEEDED .required =
#define ALSO .synonyms =
#define HELP .help =

/* Sizes from a recipe stay far below overflow; numbers have no bound but their sense. */
#define MANY 1e12
#define HUGE_REAL 1e30
#define LONGEST_SEED 9007199254740992.0 /* 2^53: exact in every reader of the recipe */

/* clang-format off */
const eg_key eg_keys[] = {
    PATH(model.path, USED TUNE | MERGE | EVAL | GEN | INSPECT | DATA | BENCH, NEEDED TUNE | MERGE | EVAL | GEN,
         ALSO "model_name_or_path base_model base model_path pretrained_model_name_or_path",
         HELP "directory of the base model: config.json and safetensors, as on the Hugging Face hub"),
    PATH(model.tokenizer, USED TUNE | MERGE | EVAL | GEN | INIT | DATA,
         ALSO "tokenizer_path vocab",
         HELP "tokenizer.model; not given: the one in the model's directory"),

    PATH(adapter.path, USED TUNE | MERGE | EVAL | GEN, NEEDED MERGE,
         ALSO "adapter_path adapter_name_or_path resume_adapter_file lora",
         HELP "adapter directory to use; finetune goes on from it"),
    CHOICE(adapter.method, "lora", methods, USED TUNE | BENCH,
           ALSO "fine_tune_type type use_dora peft_type", HELP "kind of adapter"),
    SIZE(adapter.rank, "8", 1, 65536, USED TUNE | BENCH, ALSO "r lora_r lora_rank lora_ranks dim",
         HELP "rank of the update B A"),
    REAL(adapter.alpha, "16", 0, HUGE_REAL, .above = true, USED TUNE | BENCH, ALSO "lora_alpha scale",
         HELP "the update is scaled by alpha / rank"),
    REAL(adapter.dropout, "0", 0, 1, .below = true, USED TUNE | BENCH, ALSO "lora_dropout",
         HELP "share of the adapter's inputs that is dropped while training"),
    STRINGS(adapter.targets, "[qkv_proj, out_proj, proj_1, proj_2]", .least = 1, USED TUNE | BENCH,
            ALSO "target_modules keys lora_target modules lora_target_modules lora_modules",
            HELP "modules that get an adapter; also token_embeddings, and lm_head where untied; "
                 "[all-linear] is all but these two"),
    STRING(adapter.targets_regex, NULL, USED TUNE | BENCH,
           HELP "a regular expression over full module names, instead of targets"),
    SIZES(adapter.layers, 65536, USED TUNE | BENCH, ALSO "layers_to_transform num_layers lora_layers",
          HELP "layers that get an adapter, from 0; not given: all"),
    NUMBERS(adapter.rank_pattern, 1, 65536, USED TUNE | BENCH,
            HELP "another rank for modules whose name matches, {PATTERN: RANK}"),
    NUMBERS(adapter.alpha_pattern, 0, HUGE_REAL, USED TUNE | BENCH,
            HELP "another alpha for modules whose name matches, {PATTERN: ALPHA}"),
    BOOL(adapter.use_rslora, "false", USED TUNE | BENCH, ALSO "rslora",
         HELP "scale by alpha / sqrt(rank) instead"),
    CHOICE(adapter.init, "kaiming", inits, USED TUNE | BENCH, ALSO "init_lora_weights",
           HELP "distribution that A starts from; B starts at zero"),

    PATH(data.train, USED TUNE, NEEDED TUNE, ALSO "dataset data path train_file source",
         HELP "training rows: .json, .jsonl or .txt, each also .zst"),
    PATH(data.validation, USED TUNE, ALSO "valid val test validation_file eval_dataset",
         HELP "validation rows in the same format"),
    REAL(data.validation_fraction, NULL, 0, 1, .above = true, .below = true, USED TUNE,
         ALSO "val_set_size val_size validation_split",
         HELP "share of the training rows to validate on instead"),
    CHOICE(data.format, "auto", formats, USED TUNE | EVAL | DATA, ALSO "type dataset_type",
           HELP "form of the rows; auto: told by the first one"),
    CHOICE(data.text_unit, "document", text_units, USED TUNE | EVAL | DATA,
           HELP "what a row of a .txt file is"),
    NAMES(data.fields, NULL, USED TUNE | EVAL | DATA, ALSO "columns column_map field_map",
          HELP "names of the rows' fields where they differ, {instruction: question}"),
    TEMPLATE(data.template, parts, USED TUNE | EVAL | GEN | DATA,
             ALSO "prompt_template prompt_style chat_template",
             HELP "name of a template, or one written out as {prompt: TEXT, completion: TEXT}"),
    SIZE(data.max_length, NULL, 2, 1e6, USED TUNE | EVAL | DATA,
         ALSO "max_seq_length cutoff_len max_seq_len sequence_len max_length seq_length",
         HELP "tokens of the longest row; not given: the model's context"),
    CHOICE(data.overlong, "auto", overlongs, USED TUNE | EVAL | DATA, ALSO "truncation excess_length_strategy",
           HELP "what happens to a longer row; auto splits plain text and drops others"),
    CHOICE(data.mask, "completion", masks, USED TUNE | EVAL | DATA,
           ALSO "mask_prompt train_on_inputs train_on_input completion_only_loss",
           HELP "tokens that are learned: the completion's or all"),
    BOOL(data.bos, "true", USED TUNE | EVAL | DATA, ALSO "add_bos", HELP "start each row with BOS"),
    BOOL(data.eos, "true", USED TUNE | EVAL | DATA, ALSO "add_eos", HELP "end each row with EOS, which is learned"),
    BOOL(data.shuffle, "true", USED TUNE, HELP "take the rows in another order each epoch"),
    SIZE(data.seed, "0", 0, LONGEST_SEED, USED TUNE, HELP "seed of the order and of the split"),
    SIZE(data.limit, NULL, 1, MANY, USED TUNE, ALSO "max_samples max_train_samples",
         HELP "use only so many training rows, drawn by the seed"),
    STRINGS(data.against, NULL, .least = 1, USED DATA, ALSO "contamination decontaminate",
            HELP "evaluation files whose questions are looked for in the rows"),
    SIZE(data.show, NULL, 1, MANY, USED DATA, ALSO "row show_row",
         HELP "number of a row to show as it is trained on: text, tokens, which are learned"),

    SIZE(train.epochs, "1", 1, 1e6, USED TUNE, ALSO "num_epochs num_train_epochs",
         HELP "passes over the training rows"),
    SIZE(train.steps, NULL, 1, MANY, USED TUNE, ALSO "iters max_steps max_steps_per_epoch iterations",
         HELP "optimizer steps, instead of epochs"),
    SIZE(train.batch_rows, "8", 1, 1e6, USED TUNE,
         ALSO "batch_size per_device_train_batch_size micro_batch_size",
         HELP "rows of a micro-batch"),
    SIZE(train.batch_tokens, NULL, 1, 1e9, USED TUNE, ALSO "max_tokens_per_batch",
         HELP "most tokens of a micro-batch, instead of batch_rows"),
    SIZE(train.accumulation, "1", 1, 1e6, USED TUNE,
         ALSO "gradient_accumulation_steps grad_accumulation_steps accumulation_steps",
         HELP "micro-batches of an optimizer step"),
    REAL(train.learning_rate, "3e-4", 0, HUGE_REAL, .above = true, USED TUNE,
         ALSO "lr max_lr learning-rate", HELP "highest learning rate"),
    CHOICE(train.schedule, "cosine", eg_schedule_names, USED TUNE,
           ALSO "lr_scheduler lr_scheduler_type lr_schedule scheduler",
           HELP "course of the learning rate after the warmup"),
    SIZE(train.warmup_steps, NULL, 1, MANY, USED TUNE, ALSO "warmup num_warmup_steps",
         HELP "steps in which the learning rate rises"),
    REAL(train.warmup_ratio, NULL, 0, 1, .below = true, USED TUNE,
         HELP "share of all steps to warm up in instead"),
    REAL(train.warmup_init, "0", 0, HUGE_REAL, USED TUNE, ALSO "warmup_init_lr",
         HELP "learning rate at the start of the warmup"),
    REAL(train.min_learning_rate, "0", 0, HUGE_REAL, USED TUNE, ALSO "min_lr end_learning_rate",
         HELP "learning rate at the end"),
    REAL(train.cycles, "0.5", 0, 1e6, .above = true, USED TUNE, ALSO "num_cycles",
         HELP "waves of the cosine schedule; 0.5 goes down once"),
    REAL(train.weight_decay, "0", 0, HUGE_REAL, USED TUNE, ALSO "wd",
         HELP "AdamW's decoupled weight decay of A and B"),
    BOOL(train.decay_1d, "false", USED TUNE, ALSO "no_decay_bn_filter_bias",
         HELP "decay DoRA's magnitudes too"),
    REAL(train.beta1, "0.9", 0, 1, .below = true, USED TUNE, ALSO "adam_beta1 betas",
         HELP "AdamW's decay of the mean gradient"),
    REAL(train.beta2, "0.999", 0, 1, .below = true, USED TUNE, ALSO "adam_beta2",
         HELP "AdamW's decay of the mean squared gradient"),
    REAL(train.epsilon, "1e-8", 0, 1, .above = true, USED TUNE, ALSO "eps adam_epsilon",
         HELP "AdamW's term against division by zero"),
    REAL(train.clip, "1", 0, HUGE_REAL, USED TUNE,
         ALSO "max_grad_norm clip_grad_norm gradient_clipping grad_clip",
         HELP "largest norm of the whole gradient; 0: no clipping"),
    REAL(train.lora_plus_ratio, "1", 0, HUGE_REAL, .above = true, USED TUNE,
         ALSO "loraplus_lr_ratio", HELP "LoRA+: the learning rate of B over that of A"),
    REAL(train.z_loss, "0", 0, HUGE_REAL, USED TUNE, ALSO "z_loss_eps",
         HELP "weight of the squared log-sum-exp of the logits in the loss"),
    SIZE(train.patience, NULL, 1, 1e6, USED TUNE, ALSO "early_stopping_patience early_stopping",
         HELP "stop after this many evaluations without a better validation loss"),
    SIZE(train.seed, "0", 0, LONGEST_SEED, USED TUNE, HELP "seed of the adapter and of dropout"),

    STRINGS(evaluate.tasks, NULL, .least = 1, USED EVAL, ALSO "task",
            HELP "tasks to run: boolq, piqa, ..., or paths of task files"),
    PATH(evaluate.directory, USED EVAL, ALSO "data_dir",
         HELP "directory of the tasks' data; not given: the working directory"),
    PATH(evaluate.data, USED EVAL,
         HELP "rows whose completions are measured, read as the data section says"),
    PATH(evaluate.text, USED EVAL, HELP "plain text to take the perplexity of"),
    SIZE(evaluate.limit, NULL, 1, MANY, USED EVAL, HELP "use only the first rows of each task"),
    SIZE(evaluate.window, NULL, 2, 1e6, USED EVAL,
         HELP "tokens of a window over long text; not given: the model's context"),
    SIZE(evaluate.stride, NULL, 1, 1e6, USED EVAL,
         HELP "tokens from window to window; not given: half a window"),
    SIZE(evaluate.batch_tokens, "2048", 1, 1e9, USED EVAL, HELP "tokens that are run at a time"),
    PATH(evaluate.samples, USED EVAL, ALSO "log_samples",
         HELP "directory for the answers to single questions, as JSON lines"),

    STRING(generate.prompt, NULL, USED GEN, NEEDED GEN, ALSO "text",
           HELP "what to continue; - reads standard input"),
    STRING(generate.input, NULL, USED GEN, ALSO "context",
           HELP "what the template's {input} stands for, next to the prompt"),
    SIZE(generate.max_tokens, "256", 1, 1e6, USED GEN, ALSO "max_new_tokens num_tokens",
         HELP "most tokens to write"),
    REAL(generate.temperature, "0", 0, 1e6, USED GEN, ALSO "temp",
         HELP "0 takes the likeliest token; above, tokens are drawn"),
    SIZE(generate.top_k, NULL, 1, 1e9, USED GEN, HELP "draw from the k likeliest tokens"),
    REAL(generate.top_p, "1", 0, 1, .above = true, USED GEN,
         HELP "draw from the likeliest tokens that have this probability together"),
    REAL(generate.min_p, "0", 0, 1, USED GEN,
         HELP "draw from tokens with at least this share of the highest probability"),
    SIZE(generate.seed, "0", 0, LONGEST_SEED, USED GEN, HELP "seed of the draws"),
    STRINGS(generate.stop, NULL, USED GEN, ALSO "stop_words stop_sequences",
            HELP "texts that end the output"),
    CHOICE(generate.cache, NULL, caches, USED GEN, ALSO "kv_cache cache_type kv_bits",
           HELP "number type of the keys and values that are kept; not given: bf16, half the memory, "
                "with precision bf16, else f32"),

    PATH(merge.output, USED MERGE, NEEDED MERGE, ALSO "directory save_path output_dir export_dir",
         HELP "directory of the merged model"),
    CHOICE(merge.dtype, NULL, dtypes, USED MERGE, ALSO "torch_dtype",
           HELP "number type of the merged weights; not given: the base's"),
    BOOL(merge.force, "false", USED MERGE, HELP "merge into a base that was merged before"),

    STRING(init.size, NULL, USED INIT, ALSO "model name",
           HELP "an official size: 270M, 450M, 1.1B or 3B"),
    PATH(init.config, USED INIT, HELP "config.json of the shape to make, instead of size"),
    CHOICE(init.dtype, NULL, dtypes, USED INIT, ALSO "torch_dtype",
           HELP "number type of the weights; not given: the configuration's"),
    SIZE(init.seed, "0", 0, LONGEST_SEED, USED INIT, HELP "seed of the weights"),
    PATH(init.output, USED INIT, NEEDED INIT, ALSO "directory path",
         HELP "directory to write"),

    CHOICE(bench.what, "all", benches, USED BENCH,
           HELP "the machine, its ceilings, whole training steps, or all three"),
    STRING(bench.size, NULL, USED BENCH, ALSO "model name",
           HELP "an official size with random weights instead of model.path's; neither: 270M"),
    SIZE(bench.rows, "4", 1, 1e6, USED BENCH, ALSO "batch batch_size", HELP "rows of a step"),
    SIZE(bench.length, "256", 2, 1e6, USED BENCH, ALSO "seq seq_length max_length",
         HELP "tokens of a row, random ones"),
    SIZE(bench.steps, "5", 1, 1000, USED BENCH, ALSO "iters",
         HELP "steps that are timed, after one that is not"),

    CHOICE(compute.precision, "f32", precisions, USED TUNE | EVAL | GEN | BENCH, ALSO "dtype bf16 fp16",
           HELP "arithmetic of products with frozen weights; auto: bf16 where the processor "
                "has it, else f32"),
    CHOICE(compute.kernels, "auto", eg_recipe_kernels, USED TUNE | EVAL | GEN | BENCH,
           HELP "way to compute products with frozen weights; auto: the fastest of this machine"),
    SIZE(compute.threads, "0", 0, 4096, USED TUNE | MERGE | EVAL | GEN | BENCH, ALSO "num_threads n_threads",
         HELP "threads; 0: one per core"),
    CHOICE(compute.activations, "save", activations, USED TUNE | BENCH,
           ALSO "gradient_checkpointing grad_checkpoint enable_activation_checkpointing",
           HELP "save what backward needs, or recompute it in less memory"),
    CHOICE(compute.memory, "fast", memories, USED TUNE | EVAL | GEN | BENCH, ALSO "low_memory lowmem",
           HELP "fast takes memory for speed; lean keeps no second form of the weights, and of a "
                "training step only what is cheap to keep, in bf16 with precision bf16; evaluate "
                "and generate are lean unless fast is asked for"),

    PATH(output.directory, USED TUNE, NEEDED TUNE, ALSO "output_dir save_dir adapter_path run_dir",
         HELP "run directory: resolved recipe, metrics.jsonl, checkpoints, adapter"),
    SIZE(output.checkpoint_every, NULL, 1, MANY, USED TUNE, ALSO "save_every save_steps",
         HELP "steps between checkpoints; not given: one per epoch"),
    SIZE(output.keep, "2", 1, 1e6, USED TUNE, ALSO "save_total_limit keep_last",
         HELP "newest checkpoints to keep; the best one is kept besides"),
    SIZE(output.evaluate_every, NULL, 1, MANY, USED TUNE, ALSO "steps_per_eval eval_steps eval_every",
         HELP "steps between validations; not given: one per epoch"),
    SIZE(output.log_every, "10", 1, MANY, USED TUNE, ALSO "steps_per_report logging_steps",
         HELP "steps between lines of progress"),
    BOOL(output.best, "true", USED TUNE, ALSO "load_best_model_at_end",
         HELP "export the adapter with the best validation loss instead of the last"),
};
/* clang-format on */
const size_t eg_key_count = sizeof eg_keys / sizeof eg_keys[0];

_Static_assert(sizeof eg_keys / sizeof eg_keys[0] <= EG_RECIPE_KEYS, "EG_RECIPE_KEYS");

size_t eg_key_find(const char *name)
{
    size_t i = 0;
    while (i < eg_key_count && strcmp(eg_keys[i].name, name) != 0) {
        i++;
    }
    return i;
}

bool eg_key_in_section(const eg_key *key, const char *section)
{
    const size_t length = strlen(section);
    return strncmp(key->name, section, length) == 0 && key->name[length] == '.';
}

/* The part after the section. */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static bool has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, length) == 0 && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* How well a key fits a name that is none: 3 its last part is the name's, 2 other programs
   call it so, 1 it is contained in it; one more in the right section. */
static size_t likeness(const eg_key *key, const char *name, const char *part)
{
    const char *own = last_part(key->name);
    const size_t section = (size_t)(own - key->name);
    const bool beside = strncmp(key->name, name, section) == 0;
    if (strcmp(own, part) == 0) {
        return 6 + beside;
    }
    if (has_word(key->synonyms, part)) {
        return 4 + beside;
    }
    return beside && strlen(own) >= 4 && strstr(part, own) != NULL ? 2 : 0;
}

const char *eg_key_nearest(const char *name)
{
    char plain[128];
    snprintf(plain, sizeof plain, "%s", name);
    for (char *at = plain; *at != '\0'; at++) {
        *at = *at == '-' ? '_' : *at;
    }
    const char *part = last_part(plain);
    const char *names[EG_RECIPE_KEYS];
    const char *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < eg_key_count; i++) {
        const size_t like = likeness(&eg_keys[i], plain, part);
        names[i] = part == plain ? last_part(eg_keys[i].name) : eg_keys[i].name;
        if (like > most) {
            most = like;
            best = eg_keys[i].name;
        }
    }
    if (best != NULL && most >= 4) {
        return best;
    }
    const char *near = eg_text_nearest(plain, names, eg_key_count);
    for (size_t i = 0; near != NULL && i < eg_key_count; i++) {
        if (names[i] == near) {
            return eg_keys[i].name;
        }
    }
    return best;
}
