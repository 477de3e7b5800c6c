#include "model/claim/claim_selectors.h"

static void compile(const struct jtext *text, const char *path, size_t index,
                    struct claim_selectors *ret)
{
    struct error *bad = ret->bad.code ? NULL : &ret->bad, why;
    cleanup_free char *plain = xmalloc(text->size + 1);
    size_t size = text->data ? jtext_decode(text, plain) : 0;
    int rc = text->data
                 ? claim_cel_compile(plain, size, &ret->items[ret->n], &why)
                 : error_set(&why, ENOTSUP,
                             "has no cel.expression, and Biga knows no "
                             "other selectors");
    if (rc == 0)
        ret->n++;
    else
        (void)error_set(bad, why.code, "%s[%zu]: %s", path, index, why.text);
}

void claim_read_selectors(struct claim_reading *r, struct jscan *s,
                          const char *path, struct claim_selectors *ret)
{
    static const struct jrow cel_rows[] = {
        {JROW_KEY("expression"), .policy = JROW_NULLABLE, .kind = JKIND_STRING,
         .read = jrow_text, .size = sizeof(struct jtext)},
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW_OBJECT("cel", JROW_NULLABLE, cel_rows),
        JROW_END,
    };
    if (!jscan_array(s))
        return;
    for (size_t i = 0; jscan_element(s); i++) {
        struct jtext text = {0};
        if (i == CLAIM_SELECTORS_MAX || ret->n == CLAIM_SELECTORS_MAX) {
            claim_refuse(r, s, EINVAL, "%s: are more than %d", path,
                         CLAIM_SELECTORS_MAX);
            return;
        }
        if (jrow_read(s, JROW_STRICT, rows, &text))
            compile(&text, path, i, ret);
    }
}
