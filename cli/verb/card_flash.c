/* biga card flash: begin it, and watch it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/host_socket.h"
#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/verb/card.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum {
    TIMEOUT_S = 2700,
    TIMEOUT_MAX_S = 21600,
    LOOK_MS = 500,
    SILENT_MAX = 60, /* looks without an answer: the advertiser may be being
                      * replaced */
};

static int body_of(const struct cli *c, struct str *body)
{
    int64_t seconds;
    if (settings_seconds(c, "card flash", TIMEOUT_S, TIMEOUT_MAX_S, &seconds))
        return CLI_USAGE;
    char *bfb = realpath(c->set.bfb, NULL);
    if (!bfb)
        return cli_fail("--bfb %s: %s", c->set.bfb, strerror(errno));
    jwrite_object(body, NULL);
    jwrite_text(body, "bfb", bfb);
    jwrite_text(body, "sha256", c->set.sha256);
    jwrite_text(body, "version", c->set.expect);
    jwrite_int(body, "timeout", seconds);
    jwrite_bool(body, "force", c->set.force);
    jwrite_end_object(body);
    free(bfb);
    return 0;
}

/* --- watching ------------------------------------------------------------- */

struct watch {
    struct cli *cli;
    struct host_socket l;
    struct str path; /* of the card */
    cJSON *card;     /* as seen last */
    struct str shown;
};

static const cJSON *flash_of(const cJSON *card)
{
    return cJSON_GetObjectItemCaseSensitive(card, "flash");
}

/* On a terminal one line that changes, else one for each phase. */
static void show(struct watch *w)
{
    const cJSON *flash = flash_of(w->card);
    cleanup_str struct str line = STR_INIT(1024), clean = STR_INIT(1024);
    const bool live = w->cli->colours;
    str_add(&line, json_text(flash, "phase"));
    if (live)
        str_addf(&line, " %.0f %%", json_number(flash, "percent"));
    text_clean(str_text(&line), &clean);
    if (clean.size == 0 || strcmp(str_text(&clean), str_text(&w->shown)) == 0)
        return;
    fprintf(stderr, live ? "\r%s\033[K" : "%s\n", str_text(&clean));
    (void)fflush(stderr);
    str_reset(&w->shown);
    str_add(&w->shown, str_text(&clean));
}

static bool runs(const struct watch *w)
{
    return strcmp(json_text(flash_of(w->card), "state"), "running") == 0;
}

static int follow(struct watch *w)
{
    const struct timespec nap = {0, LOOK_MS * 1000000L};
    for (unsigned silent = 0; runs(w); silent++) {
        cJSON *card = NULL;
        show(w);
        (void)nanosleep(&nap, NULL); /* a signal: we look sooner */
        if (host_socket_try(&w->l, "GET", str_text(&w->path), &card) == 0 &&
            card) {
            cJSON_Delete(w->card);
            w->card = card;
            silent = 0;
        } else if (silent >= SILENT_MAX) {
            return cli_fail("the advertiser does not answer any more; biga "
                            "card show tells what became of the flash");
        }
    }
    show(w);
    if (w->cli->colours)
        fputc('\n', stderr);
    return 0;
}

static int say_end(struct watch *w)
{
    const cJSON *flash = flash_of(w->card);
    const char *state = json_text(flash, "state");
    cleanup_str struct str name = STR_INIT(1024), why = STR_INIT(4096);
    text_clean(json_text(w->card, "name"), &name);
    text_clean(json_text(flash, "message"), &why);
    if (w->cli->set.json) {
        cleanup_free char *text = cJSON_PrintUnformatted(w->card);
        str_addf(&w->cli->out, "%s\n", text ? text : "");
    }
    if (strcmp(state, "done") == 0) {
        if (!w->cli->set.json)
            str_addf(&w->cli->out, "%s: %s; %s\n", str_text(&name),
                     str_text(&why),
                     json_true(w->card, "drained") ? "it is still drained."
                                                   : "it takes pods.");
        return 0;
    }
    if (strcmp(state, "failed") == 0 || strcmp(state, "refused") == 0)
        return cli_fail("%s: %s: %s%s", str_text(&name),
                        json_text(flash, "reason"), str_text(&why),
                        *state == 'f' ? " (the card is out of service)" : "");
    return cli_fail("%s: nothing is known of its flash any more: see biga card "
                    "show",
                    str_text(&name));
}

static int begin(struct watch *w, const char *card)
{
    cleanup_str struct str path = STR_INIT(4096), body = STR_INIT(16384);
    host_socket_card_path(card, "/flash", &path);
    int rc = body_of(w->cli, &body);
    const bool as_json = w->cli->set.json;
    w->cli->set.json = false; /* what is asked is for us */
    if (rc == 0)
        rc = host_socket_ask(&w->l, "POST", str_text(&path), &body, 0,
                             &w->card);
    w->cli->set.json = as_json;
    return rc;
}

int verb_card_flash(struct cli *c, int argc, char **argv)
{
    struct watch w = {
        .cli = c, .path = STR_INIT(4096), .shown = STR_INIT(1024)};
    (void)argc;
    if (!c->set.bfb[0])
        return cli_usage("usage: biga card flash CARD --bfb FILE");
    int rc = host_socket_open(c, &w.l);
    if (rc)
        return rc;
    rc = begin(&w, argv[0]);
    if (rc == 0) {
        host_socket_card_path(json_text(w.card, "name"), "", &w.path);
        rc = follow(&w);
    }
    if (rc == 0)
        rc = say_end(&w);
    cJSON_Delete(w.card);
    str_fini(&w.path);
    str_fini(&w.shown);
    host_socket_close(&w.l);
    return rc;
}
