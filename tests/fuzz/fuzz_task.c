/* A task file. */
#include "recipes/task_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    eg_task task;
    eg_error err = {0};
    if (fuzz_verdict(eg_task_parse(&task, (const char *)data, size, "task.yaml", &err), &err)) {
        fuzz_require(eg_task_check(&task, &err) == EG_OK, "a task that was read", &err);
        eg_task_deinit(&task);
    }
    return 0;
}
