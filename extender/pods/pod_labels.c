#include "extender/pods/pod_labels.h"

#include <string.h>

/* With the cursor before an object: before the value of the member `name`. */
static bool enter(struct jscan *s, const char *name)
{
    struct jtext key;
    if (jscan_peek(s) != JKIND_OBJECT || !jscan_object(s))
        return false;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, name))
            return true;
        if (!jscan_skip(s))
            return false;
    }
    return false;
}

struct jtext pod_labels_find(const char *json, size_t size)
{
    struct jtext labels = {.data = ""};
    struct jscan s;
    jscan_init_kube(&s, json, size);
    if (!enter(&s, "metadata") || !enter(&s, "labels") ||
        jscan_peek(&s) != JKIND_OBJECT || !jscan_raw(&s, &labels))
        return (struct jtext){.data = ""};
    return labels;
}
