#include "extender/view/kube.h"

#include <string.h>

#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"

/* --- Status --------------------------------------------------------------- */

/* k8s.io/apimachinery/pkg/apis/meta/v1, StatusReason. */
static const char *reason_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        {400, "BadRequest"},
        {403, "Forbidden"},
        {404, "NotFound"},
        {405, "MethodNotAllowed"},
        {406, "NotAcceptable"},
        {409, "Conflict"},
        {410, "Expired"},
        {413, "RequestEntityTooLarge"},
        {415, "UnsupportedMediaType"},
        {422, "Invalid"},
        {429, "TooManyRequests"},
        {500, "InternalError"},
        {503, "ServiceUnavailable"},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return status < 500 ? "BadRequest" : "InternalError";
}

void kube_write_error(struct str *out, unsigned status, const char *text)
{
    str_add(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                 "\"status\":\"Failure\",\"message\":");
    str_add_json(out, text);
    str_addf(out, ",\"reason\":\"%s\",\"code\":%u}\n", reason_of(status),
             status);
}

void kube_write_success(struct str *out, const char *name)
{
    str_add(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                 "\"status\":\"Success\",\"details\":{\"name\":");
    str_add_json(out, name);
    str_add(out, ",\"group\":\"resource.k8s.io\","
                 "\"kind\":\"resourceslices\"}}\n");
}

/* --- discovery ------------------------------------------------------------ */

#define GROUP                                                           \
    "\"name\":\"resource.k8s.io\",\"versions\":[{\"groupVersion\":"     \
    "\"resource.k8s.io/v1\",\"version\":\"v1\"}],\"preferredVersion\":" \
    "{\"groupVersion\":\"resource.k8s.io/v1\",\"version\":\"v1\"}"

const char *kube_discovery(const char *path)
{
    static const struct {
        const char *path, *document;
    } documents[] = {
        {"/api", "{\"kind\":\"APIVersions\",\"versions\":[],"
                 "\"serverAddressByClientCIDRs\":[]}\n"},
        {"/apis", "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\","
                  "\"groups\":[{" GROUP "}]}\n"},
        {"/apis/resource.k8s.io",
         "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," GROUP "}\n"},
        {"/apis/resource.k8s.io/v1",
         "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
         "\"groupVersion\":\"resource.k8s.io/v1\",\"resources\":["
         "{\"name\":\"resourceslices\",\"singularName\":\"resourceslice\","
         "\"namespaced\":false,\"kind\":\"ResourceSlice\",\"verbs\":"
         "[\"create\",\"delete\",\"get\",\"list\",\"update\"]}]}\n"},
        /* the Kubernetes release whose resource.k8s.io/v1 is spoken */
        {"/version", "{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":"
                     "\"v1.34.0+biga-" BIGA_VERSION "\"}\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(documents); i++)
        if (strcmp(documents[i].path, path) == 0)
            return documents[i].document;
    return NULL;
}

bool kube_wants_table(const char *accept)
{
    /* kubectl: application/json;as=Table;v=v1;g=meta.k8s.io,… */
    return accept && strstr(accept, "as=Table") &&
           strstr(accept, "g=meta.k8s.io");
}

/* --- objects -------------------------------------------------------------- */

bool kube_object_name(const char *json, size_t size, char *ret_name, size_t cap)
{
    struct jscan s;
    struct jtext key, name;
    bool found = false;
    jscan_init(&s, json, size);
    (void)jscan_object(&s);
    while (jscan_member(&s, &key)) {
        if (!jtext_is(&key, "metadata") || jscan_peek(&s) != JKIND_OBJECT) {
            (void)jscan_skip(&s);
            continue;
        }
        (void)jscan_object(&s);
        while (jscan_member(&s, &key)) {
            if (!jtext_is(&key, "name") || !jscan_string(&s, &name)) {
                (void)jscan_skip(&s);
            } else if (name.size < cap) {
                (void)jtext_decode(&name, ret_name);
                found = true;
            }
        }
    }
    return found && jscan_end(&s);
}

/* --- lists ---------------------------------------------------------------- */

static void write_list_head(struct str *out, const struct kube_list *list,
                            const char *kind, const char *version)
{
    str_addf(out,
             "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":"
             "{\"resourceVersion\":\"%llu\"",
             kind, version, (unsigned long long)list->resource_version);
    if (list->next) {
        str_add(out, ",\"continue\":");
        str_add_json(out, list->next);
    }
    str_add_c(out, '}');
}

void kube_write_list(struct str *out, const struct kube_list *list)
{
    write_list_head(out, list, "ResourceSliceList", SLICE_API_VERSION);
    str_add(out, ",\"items\":");
    str_add_n(out, list->items, list->size);
    str_add(out, "}\n");
}

/* What a row of the table shows of a slice; the texts are as they stand in
 * the JSON, with their quotes. */
struct row {
    struct jtext metadata, name, node, driver, pool, boot;
    int64_t generation;
    size_t n_devices, n_cards;
};

static void scan_pool(struct jscan *s, struct row *row)
{
    struct jtext key;
    (void)jscan_object(s);
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "name"))
            (void)jscan_raw(s, &row->pool);
        else if (jtext_is(&key, "generation"))
            (void)jscan_int64(s, &row->generation);
        else
            (void)jscan_skip(s);
    }
}

static void scan_devices(struct jscan *s, struct row *row)
{
    struct jtext key, name;
    (void)jscan_array(s);
    while (jscan_element(s)) {
        row->n_devices++;
        (void)jscan_object(s);
        while (jscan_member(s, &key)) {
            if (!jtext_is(&key, "name"))
                (void)jscan_skip(s);
            else if (jscan_string(s, &name) && name.size > 5 &&
                     memcmp(name.data, "card-", 5) == 0)
                row->n_cards++;
        }
    }
}

static void scan_spec(struct jscan *s, struct row *row)
{
    struct jtext key;
    (void)jscan_object(s);
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "nodeName"))
            (void)jscan_raw(s, &row->node);
        else if (jtext_is(&key, "driver"))
            (void)jscan_raw(s, &row->driver);
        else if (jtext_is(&key, "pool"))
            scan_pool(s, row);
        else if (jtext_is(&key, "devices") && !jscan_null(s))
            scan_devices(s, row);
        else if (!jtext_is(&key, "devices"))
            (void)jscan_skip(s);
    }
}

static void scan_name(struct row *row)
{
    struct jscan s;
    struct jtext key;
    jscan_init(&s, row->metadata.data, row->metadata.size);
    (void)jscan_object(&s);
    while (jscan_member(&s, &key))
        (void)jscan_raw(&s, jtext_is(&key, "name") ? &row->name : &key);
}

static struct row scan_row(const struct jtext *object)
{
    static const struct jtext empty = {"\"\"", 2, false};
    struct row row = {.metadata = {"{}", 2, false},
                      .name = empty,
                      .node = empty,
                      .driver = empty,
                      .pool = empty};
    struct jscan s;
    struct jtext key;
    jscan_init(&s, object->data, object->size);
    (void)jscan_object(&s);
    while (jscan_member(&s, &key)) {
        if (jtext_is(&key, "metadata"))
            (void)jscan_raw(&s, &row.metadata);
        else if (jtext_is(&key, "spec"))
            scan_spec(&s, &row);
        else
            (void)jscan_skip(&s);
    }
    scan_name(&row);
    return row;
}

static void write_row(struct str *out, const struct jtext *object, bool whole)
{
    struct row row = scan_row(object);
    const struct jtext *texts[] = {&row.name, &row.node, &row.driver,
                                   &row.pool};
    str_add(out, "{\"cells\":[");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        str_add_n(out, texts[i]->data, texts[i]->size);
        str_add_c(out, ',');
    }
    str_addf(out, "%lld,%zu,%zu],\"object\":", (long long)row.generation,
             row.n_devices, row.n_cards);
    if (whole) {
        str_add_n(out, object->data, object->size);
    } else {
        str_add(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
                     "\"meta.k8s.io/v1\",\"metadata\":");
        str_add_n(out, row.metadata.data, row.metadata.size);
        str_add_c(out, '}');
    }
    str_add_c(out, '}');
}

static void write_columns(struct str *out)
{
    static const struct {
        const char *name, *type, *format, *description;
    } columns[] = {
        {"Name", "string", "name", "Name of the slice"},
        {"Node", "string", "", "Node whose devices these are"},
        {"Driver", "string", "", "Driver that published them"},
        {"Pool", "string", "", "Pool that the slice is a part of"},
        {"Generation", "integer", "", "Generation of the pool"},
        {"Devices", "integer", "", "Devices in the slice"},
        {"Cards", "integer", "", "Devices that are cards"},
    };
    str_add(out, ",\"columnDefinitions\":[");
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        str_addf(out,
                 "%s{\"name\":\"%s\",\"type\":\"%s\",\"format\":\"%s\","
                 "\"description\":\"%s\",\"priority\":0}",
                 i ? "," : "", columns[i].name, columns[i].type,
                 columns[i].format, columns[i].description);
    str_add(out, "],\"rows\":[");
}

void kube_write_table(struct str *out, const struct kube_list *list, bool whole)
{
    struct jscan s;
    struct jtext object;
    const char *comma = "";
    write_list_head(out, list, "Table", "meta.k8s.io/v1");
    write_columns(out);
    jscan_init(&s, list->items, list->size);
    (void)jscan_array(&s);
    while (jscan_element(&s) && jscan_raw(&s, &object)) {
        str_add(out, comma);
        write_row(out, &object, whole);
        comma = ",";
    }
    str_add(out, "]}\n");
}
