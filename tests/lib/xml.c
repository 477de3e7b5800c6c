#include "tests/lib/xml.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

bool xml_is_well_formed(const struct str *text)
{
    if (system("command -v python3 >/dev/null") != 0)
        cr_skip_test("there is no python3");
    FILE *f = popen("python3 -c 'import sys, xml.parsers.expat as e\n"
                    "e.ParserCreate().ParseFile(sys.stdin.buffer)'",
                    "w");
    cr_assert_not_null(f);
    size_t n = fwrite(str_text(text), 1, text->size, f);
    return pclose(f) == 0 && n == text->size;
}
