/* Where a server listens, and why it cannot. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"

Test(httpd_listen, says_why_it_cannot_listen)
{
    static const char *const bad[] = {"",
                                      "localhost",
                                      "127.0.0.1:",
                                      "::1:80",
                                      "127.0.0.1:http-x",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:080808",
                                      "203.0.113.1:0",
                                      "[::1:0"};
    struct httpd *h = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};
        struct httpd_config config = {.listen = bad[i]};
        cr_assert_lt(httpd_start(&config, &h, &err), 0, "%s", bad[i]);
        cr_assert(strstr(err.text, bad[i]), "%s", err.text);
    }
    const struct httpd_config any = {.listen = "127.0.0.1:0"};
    struct error none = {0};
    cr_assert_eq(httpd_start(&any, &h, &none), 0, "%s", none.text);
    char taken[64];
    (void)snprintf(taken, sizeof taken, "127.0.0.1:%u", httpd_port(h));
    struct httpd_config config = {.listen = taken};
    struct httpd *other = NULL;
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &other, &err), -EADDRINUSE);
    httpd_stop(h);
    httpd_stop(NULL);
}
