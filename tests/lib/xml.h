/* xml - is a text XML, in the judgement of a parser that is not ours? */
#ifndef BIGA_TESTS_LIB_XML_H
#define BIGA_TESTS_LIB_XML_H

#include <stdbool.h>

#include "lib/base/str.h"

/* By Python's expat; the test is skipped where there is no python3. */
bool xml_is_well_formed(const struct str *text);

#endif
