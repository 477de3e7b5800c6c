#include "extender/admit/cookie.h"

#include <string.h>

static const char *cookie_name(bool secure)
{
    return secure ? "__Host-biga" : "biga";
}

bool cookie_token(const struct httpd_request *rq, bool secure, struct str *out)
{
    return httpd_cookie(rq, cookie_name(secure), out) && out->size > 0;
}

/* What a cookie and a header of ours can hold: RFC 6265, 4.1.1. */
static bool is_cookie(const char *token)
{
    for (const char *p = token; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr("\",;\\", *p))
            return false;
    return strlen(token) <= COOKIE_TOKEN_MAX;
}

bool cookie_set(struct httpd_request *rq, bool secure, const char *token)
{
    cleanup_str struct str text = STR_INIT(COOKIE_TOKEN_MAX + 256);
    if (!is_cookie(token))
        return false;
    str_addf(&text, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s",
             cookie_name(secure), token, secure ? "; Secure" : "",
             *token ? "" : "; Max-Age=0");
    httpd_set_header(rq, "Set-Cookie", str_text(&text));
    if (text.data)
        explicit_bzero(text.data, text.cap);
    return true;
}

const char *cookie_fault(const struct httpd_request *rq, bool of_pod)
{
    const char *site = httpd_header(rq, "Sec-Fetch-Site");
    bool own = site && strcmp(site, "same-origin") == 0;
    if (httpd_method(rq) != HTTPD_GET || httpd_header(rq, "Upgrade"))
        return "a cookie only lets read: send the token as Authorization: "
               "Bearer TOKEN";
    if (own || (!site && !of_pod))
        return NULL;
    if (site && strcmp(site, "none") == 0 && !of_pod)
        return NULL; /* the user has typed it, or has it as a bookmark */
    return "a cookie is for pages of this server alone";
}
