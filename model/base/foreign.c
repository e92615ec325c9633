#include "model/base/foreign.h"

#include <string.h>

static const struct {
    const char *magic;
    size_t length;
    const char *what;
} known[] = {
    {"version https://git-lfs", 23,
     "a Git LFS pointer; fetch the file itself with \"git lfs pull\" or download it from the hub"},
    {"<!DOCTYPE", 9, "a web page; the download gave an HTML answer, get the file itself"},
    {"<!doctype", 9, "a web page; the download gave an HTML answer, get the file itself"},
    {"<html", 5, "a web page; the download gave an HTML answer, get the file itself"},
    {"PK\003\004", 4, "a zip archive or a PyTorch checkpoint; unpack it or convert it first"},
    {"GGUF", 4, "a GGUF file; use the original Hugging Face checkpoint"},
    {"\x1f\x8b", 2, "gzip data; decompress it first"},
    {"\x28\xb5\x2f\xfd", 4, "zstd data; decompress it first"},
};

const char *eg_foreign_describe(const void *bytes, size_t length)
{
    if (length == 0) {
        return "an empty file; copy or download it again";
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (length >= known[i].length && memcmp(bytes, known[i].magic, known[i].length) == 0) {
            return known[i].what;
        }
    }
    return NULL;
}
