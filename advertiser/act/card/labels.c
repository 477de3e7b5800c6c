#include "advertiser/act/card/labels.h"

#include <string.h>

const char *label_find(const struct cri_pair *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return list[i].value;
    return "";
}
