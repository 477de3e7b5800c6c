/* Reading a fabric: which form a text has, and all sources in one. */
#include <string.h>
#include <strings.h>

#include "lib/base/jscan.h"
#include "model/fabric/fabric_private.h"

size_t fabric_line(const struct fabric_source *source, size_t at)
{
    size_t line = 1;
    for (size_t i = 0; i < at && i < source->size; i++)
        line += source->text[i] == '\n';
    return line;
}

/* --- labels ------------------------------------------------------------- */

/* From leaf to core; "a|b" is either of two keys.  Sources:
 * docs.nvidia.com/topograph/reference/node-labels-and-annotations (version 1
 * has tiers, earlier ones leaf or block, spine, core or datacenter),
 * cloud.google.com/compute/docs/instances/view-instance-topology, and
 * docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-ec2-instance-topology-works
 * (layer 1 is the top). */
static const struct {
    const char *name, *keys;
} presets[] = {
    {"topograph", "fabric.topograph.run/tier-0,fabric.topograph.run/tier-1,"
                  "fabric.topograph.run/tier-2,fabric.topograph.run/tier-3,"
                  "fabric.topograph.run/tier-4,fabric.topograph.run/tier-5,"
                  "fabric.topograph.run/tier-6,fabric.topograph.run/tier-7"},
    {"nvidia", "network.topology.nvidia.com/leaf|"
               "network.topology.nvidia.com/block,"
               "network.topology.nvidia.com/spine,"
               "network.topology.nvidia.com/core|"
               "network.topology.nvidia.com/datacenter"},
    {"gke", "cloud.google.com/gce-topology-subblock,"
            "cloud.google.com/gce-topology-block"},
    {"aws", "topology.k8s.aws/network-node-layer-3,"
            "topology.k8s.aws/network-node-layer-2,"
            "topology.k8s.aws/network-node-layer-1"},
};

bool fabric_labels_preset(size_t i, struct fabric_labels *ret_labels)
{
    return i < ARRAY_LEN(presets) &&
           fabric_labels_parse(presets[i].name, ret_labels, NULL) == 0;
}

static int keys_parse(const char *text, struct fabric_labels *ret_labels,
                      struct error *err)
{
    for (const char *p = text; *p;) {
        size_t size = strcspn(p, ",");
        if (ret_labels->n_keys == FABRIC_KEYS_MAX)
            return error_set(err, EINVAL, "more than %d keys", FABRIC_KEYS_MAX);
        if (size == 0 || size > FABRIC_NAME_MAX || memchr(p, ' ', size))
            return error_set(err, EINVAL,
                             "\"%.*s\": must be \"topograph\", \"nvidia\", "
                             "\"gke\", \"aws\" or keys of labels from leaf to "
                             "core, each of 1 to %d bytes without spaces",
                             size > 64 ? 64 : (int)size, p, FABRIC_NAME_MAX);
        memcpy(ret_labels->keys[ret_labels->n_keys++], p, size);
        p += size;
        if (*p == ',' && !*++p)
            return error_set(err, EINVAL, "ends with a comma");
    }
    return 0;
}

int fabric_labels_parse(const char *text, struct fabric_labels *ret_labels,
                        struct error *err)
{
    struct fabric_labels labels;
    memset(&labels, 0, sizeof labels);
    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        if (strcmp(text, presets[i].name) == 0)
            text = presets[i].keys;
    int r = keys_parse(text, &labels, err);
    if (r == 0)
        *ret_labels = labels;
    return r;
}

/* --- forms -------------------------------------------------------------- */

/* A list of Kubernetes objects has "items" or "kind". */
static enum fabric_format json_format(const struct fabric_source *source)
{
    struct jscan s;
    struct jtext key;
    jscan_init(&s, source->text, source->size);
    if (!jscan_object(&s))
        return FABRIC_JSON;
    while (jscan_member(&s, &key)) {
        if (jtext_is(&key, "items") || jtext_is(&key, "kind"))
            return FABRIC_LABELS;
        if (jtext_is(&key, "switches") || jtext_is(&key, "hosts"))
            return FABRIC_JSON;
        (void)jscan_skip(&s);
    }
    return FABRIC_JSON;
}

/* By the first line that says something. */
static enum fabric_format text_format(const struct fabric_source *source)
{
    static const char *const words[] = {"SwitchName", "BlockName",
                                        "BlockSizes"};
    const char *p = source->text, *end = p + source->size;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        while (p < stop && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        if (p < stop && *p != '#') {
            for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if ((size_t)(stop - p) > strlen(words[i]) &&
                    strncasecmp(p, words[i], strlen(words[i])) == 0)
                    return FABRIC_SLURM;
            return *p == '{' || *p == '[' ? json_format(source) : FABRIC_IB;
        }
        p = stop + 1;
    }
    return FABRIC_IB;
}

/* A file that is being written anew must not take all hosts away. */
static bool is_blank(const struct fabric_source *source)
{
    size_t i = 0;
    while (i < source->size && strchr(" \t\r\n", source->text[i]) &&
           source->text[i])
        i++;
    return i == source->size;
}

static int read_source(const struct fabric_source *source,
                       const struct fabric_labels *labels,
                       struct fabric_graph *g, struct error *err)
{
    enum fabric_format format = source->format;
    if (source->size > FABRIC_TEXT_MAX)
        return error_set(err, EINVAL, "%s: has more than %d bytes",
                         source->name, FABRIC_TEXT_MAX);
    if (is_blank(source))
        return error_set(err, EINVAL, "%s: is empty", source->name);
    if (format == FABRIC_AUTO)
        format = text_format(source);
    switch (format) {
    case FABRIC_SLURM:
        return fabric_read_slurm(source, g, err);
    case FABRIC_LABELS:
        return fabric_read_labels(source, labels, g, err);
    case FABRIC_JSON:
        return fabric_read_json(source, g, err);
    default:
        return fabric_read_ib(source, g, err);
    }
}

int fabric_read(const struct fabric_source *sources, size_t n,
                const struct fabric_labels *labels, struct fabric **ret_fabric,
                struct error *err)
{
    struct fabric_graph graphs[FABRIC_SOURCES_MAX] = {0};
    struct fabric_part parts[FABRIC_SOURCES_MAX] = {0};
    size_t n_domains = 0;
    int r = 0;
    if (n > FABRIC_SOURCES_MAX)
        return error_set(err, EINVAL, "%zu sources, at most %d allowed", n,
                         FABRIC_SOURCES_MAX);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = read_source(&sources[i], labels, &graphs[i], err);
        if (r == 0 && fabric_derive(&graphs[i], &parts[i], err) < 0)
            r = error_wrap(err, "%s", sources[i].name);
        n_domains += parts[i].n_domains;
        if (r == 0 && n_domains > FABRIC_DOMAINS_MAX)
            r = error_set(err, EINVAL, "%s: more than %d domains",
                          sources[i].name, FABRIC_DOMAINS_MAX);
    }
    if (r == 0)
        *ret_fabric = fabric_join(graphs, parts, n);
    for (size_t i = 0; i < n; i++) {
        fabric_part_fini(&parts[i]);
        fabric_graph_fini(&graphs[i]);
    }
    return r;
}
