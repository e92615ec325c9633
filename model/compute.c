#include "model/compute.h"

#include <stdio.h>
#include <string.h>

static const char *const precision_names[] = {
    [EG_PRECISION_F32] = "f32", [EG_PRECISION_SPLIT] = "f32-split", [EG_PRECISION_BF16] = "bf16"};

static eg_status choose_f32(eg_compute *compute, const char *kernels, eg_error *err)
{
    compute->reference = strcmp(kernels, "reference") == 0;
    if (compute->reference || strcmp(kernels, "auto") == 0 || strcmp(kernels, "openblas") == 0) {
        return EG_OK;
    }
    return eg_fail(err, EG_USAGE,
                   "compute.kernels=%s is for compute.precision=bf16 or f32-split, found f32; f32 "
                   "products are openblas's",
                   kernels);
}

static eg_status choose_bf16(eg_compute *compute, const char *kernels, eg_error *err)
{
    if (strcmp(kernels, "auto") == 0) {
        compute->kernel = eg_bf16_best();
        return EG_OK;
    }
    if (strcmp(kernels, "openblas") == 0) {
        return eg_fail(err, EG_USAGE,
                       "compute.kernels=openblas is for compute.precision=f32, found %s; use auto",
                       precision_names[compute->precision]);
    }
    eg_bf16_kernel kernel = EG_BF16_REFERENCE;
    while (kernel < EG_BF16_KERNELS && strcmp(kernels, eg_bf16_name(kernel)) != 0) {
        kernel++;
    }
    if (!eg_bf16_supported(kernel)) {
        return eg_fail(err, EG_USAGE,
                       "compute.kernels=%s: this processor cannot run it; use auto, which takes "
                       "%s here",
                       kernels, eg_bf16_name(eg_bf16_best()));
    }
    compute->kernel = kernel;
    return EG_OK;
}

eg_status eg_compute_choose(eg_compute *compute, eg_precision precision, const char *kernels,
                            eg_error *err)
{
    *compute = (eg_compute){.precision = precision};
    return precision == EG_PRECISION_F32 ? choose_f32(compute, kernels, err)
                                         : choose_bf16(compute, kernels, err);
}

bool eg_compute_native(const eg_compute *compute)
{
    return compute->precision == EG_PRECISION_F32 ? !compute->reference
                                                  : compute->kernel != EG_BF16_REFERENCE;
}

void eg_compute_describe(const eg_compute *compute, char text[EG_COMPUTE_TEXT])
{
    const char *precision = precision_names[compute->precision];
    if (compute->precision == EG_PRECISION_F32) {
        snprintf(text, EG_COMPUTE_TEXT, "%s%s", precision, compute->reference ? ", reference" : "");
    } else {
        snprintf(text, EG_COMPUTE_TEXT, "%s, %s", precision, eg_bf16_name(compute->kernel));
    }
}
