/* Writes the tests' small tokenizer.model: write_toy_tokenizer PATH. */
#include <stdio.h>

#include "tests/toy_tokenizer.h"

int main(int argc, char **argv)
{
    eg_error err = {0};
    if (argc != 2) {
        return 2;
    }
    if (toy_tokenizer_write(argv[1], &err) != EG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}
