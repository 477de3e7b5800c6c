#include "lib/base/nearest_word.h"

#include <string.h>

enum { WORD_MAX = 64 }; /* a longer one is as far as it is long */

static size_t min2(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_word_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t d[WORD_MAX + 1][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX)
        return n > m ? n : m;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            size_t change = a[i - 1] != b[j - 1];
            d[i][j] = min2(min2(d[i - 1][j], d[i][j - 1]) + 1,
                           d[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min2(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

size_t nearest_word_guess(const char *word, const char *name)
{
    size_t len = strlen(word), limit = len < 3 ? 1 : 1 + len / 4;
    if (len >= 2 && strncmp(word, name, len) == 0)
        return 0;
    size_t d = nearest_word_distance(word, name);
    return d <= limit ? d : NEAREST_WORD_NOT;
}
