#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/jrow.h"

#define TEXT(key, field) \
    JROW(key, JROW_LAX, jrow_copy, struct cluster_object, field)
#define OBJECT(key, field)                                       \
    {                                                            \
        JROW_KEY(key), .policy = JROW_LAX, .kind = JKIND_OBJECT, \
                       .read = jrow_raw,                         \
                       JROW_FIELD(struct cluster_object, field)  \
    }

static const struct jrow metadata_rows[] = {
    TEXT("name", name),
    TEXT("uid", uid),
    TEXT("resourceVersion", resource_version),
    OBJECT("labels", labels),
    JROW_END,
};
static const struct jrow rows[] = {
    JROW_OBJECT("metadata", JROW_LAX, metadata_rows),
    OBJECT("spec", spec),
    OBJECT("status", status),
    JROW_END,
};

int cluster_object_read(const char *json, size_t size,
                        struct cluster_object *ret_object, struct error *err)
{
    struct cluster_object o = {0};
    struct jscan s;
    jscan_init_kube(&s, json, size);
    if (jrow_parse(&s, JROW_STRICT, rows, &o, err) < 0)
        return -EINVAL;
    if (!o.name[0])
        return error_set(err, EINVAL, "metadata.name: must have 1 to %zu bytes",
                         sizeof o.name - 1);
    *ret_object = o;
    return 0;
}
