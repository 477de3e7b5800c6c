/* fabric - what the server says of the fabric, as a picture to draw.  Pure. */
#ifndef BIGA_CLI_VERB_FABRIC_H
#define BIGA_CLI_VERB_FABRIC_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum { PICTURE_NONE = -1 };

struct picture_host {
    char *name;
    int32_t leaf;        /* index of a domain, PICTURE_NONE: unknown place */
    int32_t cards, idle; /* -1: it has not published */
};

struct picture_domain {
    char *name;
    uint8_t tier;
    int32_t parent; /* index, of a higher tier; or PICTURE_NONE */
    int32_t first_child, next_sibling; /* in the order of names */
    size_t first_host, n_hosts;        /* of a leaf: in picture.hosts */
    uint32_t hosts, cards, idle;       /* of its whole tree */
};

struct picture {
    struct picture_domain *domains;
    size_t n_domains;
    int32_t first_root;         /* domains without a parent, as siblings */
    struct picture_host *hosts; /* by leaf (unknown place first), then name */
    size_t n_hosts, hosts_cap;
    size_t n_unknown; /* hosts[0 …) of unknown place */
};

void picture_init(struct picture *p);
void picture_fini(struct picture *p);
#define cleanup_picture __attribute__((__cleanup__(picture_fini)))

/* Add one page of GET /v1/fabric; the first has the domains.  0 or
 * -EINVAL. */
int picture_add(struct picture *p, const cJSON *page, struct error *err);
/* After the last page: sort the hosts below their leaves. */
void picture_finish(struct picture *p);

/* Names that differ in one number only as one: "host[001-032,040]-a", with
 * ", " between what cannot be folded.  Control characters become '?'. */
void picture_fold(const struct picture_host *hosts, size_t n, struct str *out);

/* The tree for a terminal; the graph in Graphviz's language; the drawing as
 * SVG, whose colours follow the viewer's light or dark scheme. */
void picture_tree(const struct picture *p, struct str *out);
void picture_dot(const struct picture *p, struct str *out);
void picture_svg(const struct picture *p, struct str *out);

#endif
