#include "lib/http/cookies.h"

#include <string.h>

bool cookies_find(const char *header, const char *name, struct str *out)
{
    size_t size = strlen(name);
    for (const char *p = header; *p;) {
        p += strspn(p, " \t;");
        size_t pair = strcspn(p, ";");
        if (pair > size && strncmp(p, name, size) == 0 && p[size] == '=') {
            str_add_n(out, p + size + 1, pair - size - 1);
            return !out->overflow;
        }
        p += pair;
    }
    return false;
}
