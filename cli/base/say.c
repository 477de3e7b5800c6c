#include "cli/base/say.h"

#include <stdarg.h>

#include "lib/base/nearest_word.h"
#include "lib/base/text.h"

static char *text_of(const char *fmt, va_list ap)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, ap) < 0)
        abort(); /* out of memory, as x*alloc does */
    return text;
}

int cli_fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cleanup_free char *text = text_of(fmt, ap);
    va_end(ap);
    fprintf(stderr, "biga: %s\n", text);
    return CLI_FAILED;
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cleanup_free char *text = text_of(fmt, ap);
    va_end(ap);
    fprintf(stderr, "biga: %s\n", text);
    return CLI_USAGE;
}

void cli_add_meant(struct str *text, const char *word, const char *const *words)
{
    const char *best = NULL;
    size_t least = NEAREST_WORD_NOT;
    for (; *words; words++) {
        size_t far = nearest_word_guess(word, *words);
        if (far < least)
            best = *words;
        if (far < least)
            least = far;
    }
    if (best)
        str_addf(text, "; did you mean %s?", best);
}

int cli_usage_word(const char *what, const char *word, const char *const *words)
{
    cleanup_str struct str text = STR_INIT(4096);
    for (size_t i = 0; words[i]; i++)
        str_addf(&text, "%s%s",
                 i == 0         ? ""
                 : words[i + 1] ? ", "
                                : " or ",
                 words[i]);
    cli_add_meant(&text, word, words);
    return cli_usage("%s: \"%s\": must be %s", what, word, str_text(&text));
}

int cli_fail_answer(const char *who, const struct http_answer *answer)
{
    cleanup_str struct str why = STR_INIT(4096), clean = STR_INIT(4096);
    http_answer_error(answer, &why);
    text_clean(str_text(&why), &clean);
    return cli_fail("the %s answered %ld: %s", who, answer->status,
                    str_text(&clean));
}

void cli_line(struct cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cleanup_free char *text = text_of(fmt, ap);
    va_end(ap);
    text_clean(text, &c->out);
    str_add_c(&c->out, '\n');
}
