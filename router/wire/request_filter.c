/* Whether an item passes the filter of its list. */
#include <string.h>

#include "router/wire/request.h"

/* A runtime takes the beginning of an id for it, as people give it. */
static bool begins(const char *id, const char *beginning)
{
    return strncmp(id ? id : "", beginning, strlen(beginning)) == 0;
}

static bool has_state(const struct request_filter *f,
                      const struct list_form *form, struct proto_bytes item)
{
    struct proto_field state;
    int e = proto_find(item, form->item_state, PROTO_VARINT, &state, NULL);
    return e >= 0 && (e > 0 ? state.value : 0) == f->state;
}

static bool has_labels(const struct request_filter *f,
                       const struct list_form *form, struct proto_bytes item)
{
    struct proto_bytes value;
    for (size_t i = 0; i < f->labels.n; i++)
        if (proto_find_pair(item, form->item_labels, f->labels.list[i].key,
                            &value, NULL) <= 0 ||
            !proto_equals(value, f->labels.list[i].value))
            return false;
    return true;
}

bool request_filter_passes(const struct request_filter *f,
                           const struct method *m, const struct list_item *item)
{
    const struct list_form *form = list_form_get(m);
    struct proto_bytes labelled = item->message;
    struct proto_field attributes;
    if (!form || !begins(item->id, f->id) ||
        !begins(item->sandbox_id, f->sandbox_id))
        return false;
    if (f->has_state && form->item_state && !has_state(f, form, item->message))
        return false;
    if (f->labels.n > 0 && form->item_attributes) {
        if (proto_find(item->message, form->item_attributes, PROTO_BYTES,
                       &attributes, NULL) <= 0)
            return false;
        labelled = attributes.bytes;
    }
    return has_labels(f, form, labelled);
}
