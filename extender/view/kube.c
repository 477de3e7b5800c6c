#include "extender/view/kube.h"

#include <string.h>

#include "lib/base/jrow.h"
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

struct named {
    char *name;
    size_t cap;
    bool found;
};

static void read_name(struct jscan *s, void *to)
{
    struct named *named = to;
    struct jtext name;
    if (!jscan_string(s, &name) || name.size >= named->cap)
        return;
    (void)jtext_decode(&name, named->name);
    named->found = true;
}

bool kube_object_name(const char *json, size_t size, char *ret_name, size_t cap)
{
    static const struct jrow metadata_rows[] = {
        JROW_CALL("name", JROW_STRICT, JKIND_STRING, read_name),
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW_OBJECT("metadata", JROW_LAX, metadata_rows),
        JROW_END,
    };
    struct named named = {ret_name, cap, false};
    struct jscan s;
    jscan_init(&s, json, size);
    return jrow_read(&s, JROW_STRICT, rows, &named) && jscan_end(&s) &&
           named.found;
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

static void count_card(struct jscan *s, void *to)
{
    struct jtext name;
    if (jscan_string(s, &name) && name.size > 5 &&
        memcmp(name.data, "card-", 5) == 0)
        ((struct row *)to)->n_cards++;
}

static void count_device(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW_CALL("name", JROW_STRICT, JKIND_STRING, count_card),
        JROW_END,
    };
    ((struct row *)to)->n_devices++;
    (void)jrow_read(s, JROW_STRICT, rows, to); /* a fault sticks */
}

#define RAW(key, field) JROW(key, JROW_STRICT, jrow_raw, struct row, field)
static const struct jrow pool_rows[] = {
    RAW("name", pool),
    JROW("generation", JROW_STRICT, jrow_int64, struct row, generation),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    RAW("nodeName", node),
    RAW("driver", driver),
    JROW_OBJECT("pool", JROW_STRICT, pool_rows),
    JROW_EACH("devices", JROW_NULLABLE, count_device),
    JROW_END,
};
static const struct jrow object_rows[] = {
    RAW("metadata", metadata),
    JROW_OBJECT("spec", JROW_STRICT, spec_rows),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    RAW("name", name),
    JROW_END,
};

static struct row scan_row(const struct jtext *object)
{
    static const struct jtext empty = {"\"\"", 2, false};
    struct row row = {.metadata = {"{}", 2, false},
                      .name = empty,
                      .node = empty,
                      .driver = empty,
                      .pool = empty};
    struct jscan s;
    jscan_init(&s, object->data, object->size);
    (void)jrow_read(&s, JROW_STRICT, object_rows, &row); /* was checked */
    jscan_init(&s, row.metadata.data, row.metadata.size);
    (void)jrow_read(&s, JROW_STRICT, metadata_rows, &row); /* the same */
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
