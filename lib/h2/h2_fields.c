#include "lib/h2/h2_fields.h"

#include <string.h>
#include <strings.h>

void h2_fields_init(struct h2_fields *f, size_t max)
{
    *f = (struct h2_fields){.max = max};
    str_init(&f->text, STR_MAX_DEFAULT);
    f->text.soft = true;
}

void h2_fields_fini(struct h2_fields *f)
{
    str_fini(&f->text);
    f->n = f->size = 0;
}

void h2_fields_reset(struct h2_fields *f)
{
    str_reset(&f->text);
    f->n = f->size = 0;
}

bool h2_fields_add(struct h2_fields *f, const char *name, size_t name_size,
                   const char *value, size_t value_size)
{
    f->size += name_size + value_size + H2_FIELD_OVERHEAD;
    if (f->size > f->max || !str_reserve(&f->text, name_size + value_size + 2))
        return false;
    str_add_n(&f->text, name, name_size);
    str_add_c(&f->text, '\0');
    str_add_n(&f->text, value, value_size);
    str_add_c(&f->text, '\0');
    f->n++;
    return true;
}

bool h2_fields_add_text(struct h2_fields *f, const char *name,
                        const char *value)
{
    return h2_fields_add(f, name, strlen(name), value, strlen(value));
}

bool h2_fields_are_cut(const struct h2_fields *f)
{
    return f->size > f->max || f->text.starved;
}

bool h2_fields_next(const struct h2_fields *f, size_t *at,
                    const char **ret_name, const char **ret_value)
{
    if (*at >= f->text.size)
        return false;
    *ret_name = f->text.data + *at;
    *ret_value = *ret_name + strlen(*ret_name) + 1;
    *at = (size_t)(*ret_value - f->text.data) + strlen(*ret_value) + 1;
    return true;
}

const char *h2_fields_get(const struct h2_fields *f, const char *name)
{
    const char *its, *value;
    for (size_t at = 0; h2_fields_next(f, &at, &its, &value);)
        if (strcasecmp(its, name) == 0)
            return value;
    return NULL;
}

nghttp2_nv h2_nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}
