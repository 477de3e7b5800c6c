/* A posted slice: its name is found within the buffer given, and what is
 * written of an object that is JSON is JSON again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "extender/keep/served_slice.h"
#include "extender/view/kube.h"
#include "lib/base/jscan.h"
#include "lib/base/json.h"

enum { OUT_MAX = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(const struct str *text)
{
    struct jscan s;
    jscan_init(&s, str_text(text), text->size);
    return jscan_skip(&s) && jscan_end(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_str struct str object = STR_INIT(OUT_MAX), out = STR_INIT(OUT_MAX);
    const char *json = (const char *)data;
    char name[64];
    struct error err;
    struct jscan s;
    if (kube_object_name(json, size, name, sizeof name))
        assert(strlen(name) < sizeof name);
    jscan_init(&s, json, size);
    if (jscan_peek(&s) != JKIND_OBJECT || json_check(json, size, &err))
        return 0;
    served_slice_write(&object, &(struct served_slice){"n", json, size, 7});
    assert(object.overflow || is_json(&object));
    cleanup_str struct str items = STR_INIT(OUT_MAX);
    str_addf(&items, "[%s]", str_text(&object));
    struct kube_list list = {str_text(&items), items.size, 7, "next"};
    /* brackets may make it nest deeper than the scanner goes */
    if (!is_json(&items))
        return 0;
    kube_write_list(&out, &list);
    str_reset(&out);
    kube_write_table(&out, &list, size % 2);
    assert(out.overflow || is_json(&out));
    return 0;
}
