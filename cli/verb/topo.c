/* biga topo, biga matrix */
#include "cli/base/say.h"
#include "cli/verb/host.h"
#include "cli/verb/host_notes.h"
#include "cli/verb/verb.h"

/* Fetch a node's topology.  An exit code; `*ret_done` when there is nothing
 * left to print. */
static int fetch(struct cli *c, const char *node, struct host *ret_host,
                 bool *ret_done)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    str_add(&path, "/v1/topology?node=");
    cli_add_encoded(&path, node);
    int rc = cli_get(c, str_text(&path), &json);
    *ret_done = rc || !json;
    if (*ret_done)
        return rc;
    if (host_read(json, ret_host, &err)) {
        *ret_done = true;
        return cli_fail("the server's topology of %s: %s", node, err.text);
    }
    return 0;
}

/* With who has what. */
static int draw_tree(struct cli *c, const struct host *h)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    str_add(&path, "/v1/allocations?limit=100000&node=");
    cli_add_encoded(&path, h->name);
    int rc = cli_get(c, str_text(&path), &json);
    if (rc)
        return rc;
    cleanup_host_notes struct host_notes notes;
    host_notes_init(&notes, h, json, NULL);
    host_tree(h, (const char *const *)notes.texts, c->colours, &c->out);
    return 0;
}

static int fetch_drawing(struct cli *c, const char *node)
{
    cleanup_str struct str path = STR_INIT(4096);
    if (c->set.json)
        return cli_usage("topo: a drawing is no JSON: --json or --svg");
    str_add(&path, "/v1/nodes/");
    cli_add_encoded(&path, node);
    str_add(&path, "/drawing");
    return cli_get_text(c, str_text(&path));
}

int verb_topo(struct cli *c, int argc, char **argv)
{
    cleanup_host struct host h = {0};
    bool done;
    (void)argc;
    if (c->set.svg)
        return fetch_drawing(c, argv[0]);
    int rc = fetch(c, argv[0], &h, &done);
    return done ? rc : draw_tree(c, &h);
}

int verb_matrix(struct cli *c, int argc, char **argv)
{
    cleanup_host struct host h = {0};
    bool done;
    (void)argc;
    int rc = fetch(c, argv[0], &h, &done);
    if (!done)
        host_matrix(&h, c->colours, &c->out);
    return rc;
}
