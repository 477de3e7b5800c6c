#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/settings.h"

/* What router_settings_check() says of these arguments; "" nothing. */
static const char *said(char **argv, int argc)
{
    static struct error err;
    struct router_settings s = {0};
    int first = 1;
    err = (struct error){0};
    int r = conf_read(&router_program, argc, argv, &s, &first, &err);
    cr_assert_eq(r, 0, "%s", err.text);
    r = router_settings_check(&s, &err);
    cr_assert_eq(r == 0, err.text[0] == '\0');
    conf_fini(&router_program, &s);
    return err.text;
}

#define SAID(...)                                            \
    ({                                                       \
        char *argv_[] = {(char[]){"biga-cri"}, __VA_ARGS__}; \
        said(argv_, (int)ARRAY_LEN(argv_));                  \
    })
#define ARG(text) ((char[]){text})

Test(router_settings, defaults_are_good)
{
    cr_assert_str_empty(SAID(ARG("--log-level=info")));
}

Test(router_settings, sockets_are_unix)
{
    const char *text = SAID(ARG("--listen=/run/x.sock"));
    cr_assert(strstr(text, "--listen: is \"/run/x.sock\""), "%s", text);
    text = SAID(ARG("--home=unix://run/x.sock"));
    cr_assert(strstr(text, "--home: is"), "%s", text);
    text = SAID(ARG("--home=unix:///run/biga/cri.sock"));
    cr_assert(strstr(text, "--listen and --home: both"), "%s", text);
}

Test(router_settings, paths_are_absolute)
{
    const char *text = SAID(ARG("--state=here"));
    cr_assert(strstr(text, "--state: is \"here\""), "%s", text);
    text = SAID(ARG("--pod-logs=logs"));
    cr_assert(strstr(text, "--pod-logs: is \"logs\""), "%s", text);
    text = SAID(ARG("--host-paths=/data,/opt/../etc"));
    cr_assert(strstr(text, "\"/opt/../etc\""), "%s", text);
    cr_assert_str_empty(SAID(ARG("--host-paths=/data,/opt/x")));
}

Test(router_settings, handlers_are_labels)
{
    const char *text = SAID(ARG("--handler=XPU"));
    cr_assert(strstr(text, "--handler: is \"XPU\""), "%s", text);
    text = SAID(ARG("--remote-handler=-runc"));
    cr_assert(strstr(text, "--remote-handler: is \"-runc\""), "%s", text);
    text = SAID(ARG("--cluster=a b"));
    cr_assert(strstr(text, "--cluster: is \"a b\""), "%s", text);
}

Test(router_settings, metrics_are_for_this_machine)
{
    const char *text = SAID(ARG("--metrics-listen=0.0.0.0:8704"));
    cr_assert(strstr(text, "--metrics-listen: is \"0.0.0.0:8704\""), "%s",
              text);
    cr_assert_str_empty(SAID(ARG("--metrics-listen=[::1]:8704")));
}

Test(router_settings, images_go_between_two_marks)
{
    const char *text = SAID(ARG("--image-gc-low=85"));
    cr_assert(strstr(text, "--image-gc-low: is 85, must be less than "
                           "--image-gc-high, which is 85"),
              "%s", text);
    cr_assert_str_empty(SAID(ARG("--image-gc-high=100")));
}

Test(router_settings, rights_are_known)
{
    const char *text = SAID(ARG("--allow=ROOT"));
    cr_assert(strstr(text, "--allow: has \"ROOT\""), "%s", text);
}

Test(router_settings, the_other_machine_has_keys)
{
    const char *text = SAID(ARG("--remote=tcp://10.0.0.1:7443"));
    cr_assert(strstr(text, "0 of them are given"), "%s", text);
    text = SAID(ARG("--plaintext"));
    cr_assert(strstr(text, "--plaintext: needs --remote"), "%s", text);
    text = SAID(ARG("--remote=tcp://10.0.0.1:7443"), ARG("--plaintext"),
                ARG("--card-file=/etc/cards"));
    cr_assert(strstr(text, "--card-file: cannot be combined"), "%s", text);
    cr_assert_str_empty(
        SAID(ARG("--remote=tcp://10.0.0.1:7443"), ARG("--plaintext")));
    text = SAID(ARG("--remote=unix:///x"), ARG("--plaintext"));
    cr_assert(strstr(text, "must be tcp://HOST:PORT"), "%s", text);
}

Test(router_settings, a_node_has_a_name)
{
    char name[ROUTER_NODE_MAX + 1];
    struct error err = {0};
    cr_assert_eq(router_settings_node(&(struct router_settings){.node = "h-1"},
                                      name, &err),
                 0);
    cr_assert_str_eq(name, "h-1");
    cr_assert_eq(router_settings_node(&(struct router_settings){.node = "H"},
                                      name, &err),
                 -EINVAL);
    cr_assert(strstr(err.text, "--node: is \"H\""), "%s", err.text);
    cr_assert_eq(router_settings_node(&(struct router_settings){0}, name, &err),
                 0, "%s", err.text);
}
