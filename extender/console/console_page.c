#include "extender/console/console_page.h"

#include "extender/console/console_files.h"
#include "extender/console/html.h"

static const struct {
    const char *path, *word;
} sections[CONSOLE_SECTIONS] = {
    [CONSOLE_FLEET] = {"/", "Fleet"},
    [CONSOLE_NODES] = {"/ui/nodes", "Nodes"},
    [CONSOLE_JOBS] = {"/ui/jobs", "Jobs"},
    [CONSOLE_PENDING] = {"/ui/pending", "Pending"},
    [CONSOLE_EVENTS] = {"/ui/events", "Events"},
    [CONSOLE_REPLAY] = {"/ui/replay", "Replay"},
};

static void write_head(const char *title, struct str *out)
{
    html_addf(out,
              "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
              "charset=\"utf-8\">\n<meta name=\"viewport\" "
              "content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"color-scheme\" content=\"light dark\">\n"
              "<title>%s · Biga</title>\n"
              "<link rel=\"icon\" href=\"/ui/icon.svg\">\n"
              "<link rel=\"stylesheet\" href=\"/ui/console.css\">\n"
              "<script src=\"/ui/console.js\" defer></script>\n</head>\n",
              title);
}

/* The slider is the script's; without it a moment can be typed. */
static void write_time(const struct console_page *page, struct str *out)
{
    bool past = page->at && *page->at;
    html_addf(out,
              "<form id=\"time\" class=\"%s\" aria-label=\"Time\"><label "
              "for=\"moment\" hidden>Time</label><input id=\"moment\" "
              "type=\"range\" min=\"-1440\" max=\"0\" value=\"0\" hidden>"
              "<label for=\"at\">As it was at</label><input id=\"at\" "
              "name=\"at\" size=\"25\" placeholder=\"2026-11-01T14:05:00Z\" "
              "value=\"%s\"><label for=\"span\" class=\"unseen\">How far back"
              "</label><select id=\"span\" hidden><option value=\"60\">1 hour"
              "<option value=\"1440\" selected>1 day<option value=\"10080\">"
              "7 days<option value=\"43200\">30 days</select><button>Show"
              "</button><button type=\"button\" id=\"now\" hidden>Now</button>"
              "</form>\n",
              past ? "past" : "", past ? page->at : "");
}

static void write_bar(const struct console_page *page, struct str *out)
{
    str_add(out, "<header><a class=\"brand\" href=\"/\">Biga</a>\n"
                 "<nav aria-label=\"Pages\">");
    for (int i = 0; i < CONSOLE_SECTIONS; i++) {
        if (i == CONSOLE_EVENTS && !page->history)
            continue;
        html_addf(out, "<a href=\"%s\"", sections[i].path);
        if (i == (int)page->section)
            str_add(out, " aria-current=\"page\"");
        html_addf(out, ">%s</a>", sections[i].word);
    }
    html_addf(out,
              "</nav>\n<form role=\"search\" action=\"/ui/search\">"
              "<label class=\"unseen\" for=\"q\">Search nodes, cards, pods "
              "and jobs</label><input id=\"q\" name=\"q\" type=\"search\" "
              "placeholder=\"Search: press /\" autocomplete=\"off\" "
              "maxlength=\"253\" value=\"%s\"></form>\n"
              "<span id=\"live\" role=\"status\" hidden></span>\n",
              page->query ? page->query : "");
    if (page->token)
        str_add(out, "<form method=\"post\" action=\"/ui/logout\">"
                     "<button>Log out</button></form>\n");
    str_add(out, "</header>\n");
    if (page->history && page->timed)
        write_time(page, out);
}

void console_page_begin(const struct console_page *page, struct str *out)
{
    write_head(page->title, out);
    str_add(out, "<body><a class=\"skip\" href=\"#main\">Skip to the "
                 "content</a>\n");
    write_bar(page, out);
    html_addf(out, "<main id=\"main\" tabindex=\"-1\" data-tag=\"%s\">\n",
              page->tag);
}

void console_page_end(const struct console_page *page, struct str *out)
{
    (void)page;
    html_addf(out,
              "</main>\n<footer><span>biga %s</span><a href=\"/v1/nodes\">API"
              "</a><a href=\"/openapi.yaml\">openapi.yaml</a><a "
              "href=\"/metrics\">metrics</a><span class=\"keys\">Keys: <kbd>/"
              "</kbd> search, arrows in maps and lists</span></footer>\n"
              "</body></html>\n",
              BIGA_VERSION);
}

void console_login_write(const char *why, const char *next, struct str *out)
{
    write_head("Log in", out);
    str_add(out, "<body class=\"login\"><main id=\"main\"><h1>Biga</h1>\n");
    if (why)
        html_addf(out, "<p role=\"alert\" class=\"alert\">%s</p>\n", why);
    html_addf(out,
              "<form method=\"post\" action=\"/ui/login\"><input "
              "type=\"hidden\" name=\"next\" value=\"%s\">",
              next);
    str_add(out,
            "<label for=\"token\">Token</label><input id=\"token\" "
            "name=\"token\" type=\"password\" required autofocus "
            "autocomplete=\"current-password\" spellcheck=\"false\">"
            "<button>Log in</button></form>\n<p>The token that "
            "<code>biga --token-file</code> takes. It is kept in a cookie of "
            "this browser until it is closed, and sent to nobody "
            "else.</p></main></body></html>\n");
}
