/*
 * Counts over UTF-8 text, by the definitions of lm-eval (Python's): white space is what
 * str.isspace and re's \s call so, words are what re.split(r"\s+", text) returns, and
 * characters are code points. Bytes that are not UTF-8 count one each.
 */
#ifndef EG_TRAIN_MEASURE_TEXT_H
#define EG_TRAIN_MEASURE_TEXT_H

#include <stddef.h>

/* Runs of white space, plus one: text that begins or ends with white space counts the empty
   word there, as lm-eval's word_perplexity does. */
size_t eg_count_words(const char *text, size_t length);

size_t eg_count_characters(const char *text, size_t length);

/* The length of the text without the white space at its end (str.rstrip). */
size_t eg_trimmed_length(const char *text, size_t length);

#endif
