#include "tests/lib/badjson.h"

#include <string.h>

#include "lib/base/mem.h"

/* A literal with its size: the texts may hold NUL bytes. */
#define D(name, text)                \
    {                                \
        name, text, sizeof(text) - 1 \
    }

static const struct badjson arrays[] = {
    D("array: no comma after a literal", "[7 false]"),
    D("array: stray byte of UTF-8 after a value", "[x\xe7]"),
    D("array: colon for a comma", "[\"k\": 4]"),
    D("array: comma behind the end", "[\"k\"],"),
    D("array: comma before the only value", "[,4]"),
    D("array: two commas between values", "[4,,5]"),
    D("array: two commas at the end", "[\"k\",,]"),
    D("array: closed twice", "[\"k\"]]"),
    D("array: comma at the end", "[\"k\",]"),
    D("array: not closed after a text", "[\"k\""),
    D("array: not closed after a letter", "[k"),
    D("array: an array without a comma before it", "[4[5]]"),
    D("array: byte of UTF-8 alone", "[\xfe]"),
    D("array: semicolon for a comma", "[4;5]"),
    D("array: a comma alone", "[,]"),
    D("array: a minus alone", "[-]"),
    D("array: commas around nothing", "[ , \"k\"]"),
    D("array: line breaks, not closed", "[\"k\",\n5\n,6"),
    D("array: comma after a number", "[4,]"),
    D("array: commas after a number", "[4,,]"),
    D("array: vertical tab and form feed", "[\"\vk\"\\f]"),
    D("array: a star", "[*]"),
    D("array: opened around a text", "[\"\""),
    D("array: not closed after a comma", "[4,"),
    D("array: not closed, line breaks", "[4,\n5\n,6\n"),
    D("array: not closed after an object", "[{}"),
    D("cut off: false", "[fals]"),
    D("cut off: null", "[nul]"),
    D("cut off: true", "[tru]"),
    D("trailing: NUL after a number", "456\0"),
};

static const struct badjson numbers[] = {
    D("number: two pluses", "[++7]"),
    D("number: a plus", "[+7]"),
    D("number: plus Inf", "[+Inf]"),
    D("number: minus zero seven", "[-07]"),
    D("number: minus zeros", "[-00]"),
    D("number: zeros", "[00]"),
    D("number: minus, point at the end", "[-7.0.]"),
    D("number: minus, nothing behind the point", "[-7.]"),
    D("number: minus NaN", "[-NaN]"),
    D("number: point before the minus", "[.-7]"),
    D("number: point first, exponent", "[.7e-3]"),
    D("number: two points", "[7.1.2]"),
    D("number: sign without an exponent", "[7.3e+]"),
    D("number: fraction, e alone", "[7.3e]"),
    D("number: e behind the point", "[7.e1]"),
    D("number: zero, E plus", "[0E+]"),
    D("number: zero, E", "[0E]"),
    D("number: zero, e plus", "[0e+]"),
    D("number: zero, e", "[0e]"),
    D("number: fraction, e plus", "[7.0e+]"),
    D("number: fraction, e minus", "[7.0e-]"),
    D("number: fraction, e", "[7.0e]"),
    D("number: a space between thousands", "[7 000.0]"),
    D("number: underscore between thousands", "[7_000]"),
    D("number: two exponents", "[7eE3]"),
    D("number: point, e plus", "[7.e+3]"),
    D("number: point, e minus", "[7.e-3]"),
    D("number: point, e", "[7.e3]"),
    D("number: nine point e plus nothing", "[9.e+]"),
    D("number: Inf", "[Inf]"),
    D("number: NaN", "[NaN]"),
    D("number: a full-width digit", "[\xef\xbc\x97]"),
    D("number: a sum", "[7+2]"),
    D("number: hexadecimal, one digit", "[0x7]"),
    D("number: hexadecimal, two digits", "[0x7f]"),
    D("number: Infinity", "[Infinity]"),
    D("number: exponent of both signs", "[0e+-7]"),
    D("number: letters behind a fraction", "[-765.43foo]"),
    D("number: bad byte in a big integer", "[76543\xe6]"),
    D("number: bad byte in an exponent", "[7e1\xe6]"),
    D("number: bad byte behind zero", "[0\xe6]\n"),
    D("number: minus Infinity", "[-Infinity]"),
    D("number: minus and letters", "[-foo]"),
    D("number: minus, space, digit", "[- 7]"),
    D("number: minus, zero, digits", "[-076]"),
    D("number: minus, point, digits", "[-.765]"),
    D("number: minus, digit, letter", "[-7x]"),
    D("number: letter in the exponent", "[7ea]"),
    D("number: bad byte behind e", "[7e\xe6]"),
    D("number: point, nothing, exponent", "[7.]"),
    D("number: point first", "[.765]"),
    D("number: letters in the exponent", "[7.2a-3]"),
    D("number: letter in the fraction", "[7.8h35]"),
    D("number: zero first", "[076]"),
    D("number: beyond a double", "[7e400]"),
    D("number: beyond a double, whole", "[-7e308]"),
    D("number: more digits than any double needs",
      "[7777777777777777777777777777777777777777"
      "777777777777777777777777]"),
    D("number: plus at the top", "+1"),
    D("number: point at the top", ".5"),
    D("number: nothing behind the point at the top", "1."),
    D("number: minus at the top", "-"),
};

static const struct badjson objects[] = {
    D("object: two literals", "[\"k\", truth]"),
    D("object: an array for a key", "{[: \"k\"}\n"),
    D("object: comma for a colon", "{\"k\", null}"),
    D("object: two colons", "{\"k\"::\"v\"}"),
    D("object: a picture for a key", "{\xf0\x9f\x90\x8e}"),
    D("object: a value behind the value", "{\"k\":\"v\" 765}"),
    D("object: key in single quotes", "{'k': 7}"),
    D("object: stray byte in the key, comma at the end", "{\"\xb7\":\"7\",}"),
    D("object: no colon", "{\"k\" v}"),
    D("object: no key", "{:\"v\"}"),
    D("object: nothing between key and value", "{\"k\" \"v\"}"),
    D("object: no value", "{\"k\":"),
    D("object: key and its end", "{\"k\""),
    D("object: a number for a key", "{7:7}"),
    D("object: a huge number for a key", "{9999E9999:7}"),
    D("object: literals for keys", "{null:null,null:null}"),
    D("object: commas at the end", "{\"k\":7,,,,,}"),
    D("object: single quotes all over", "{'k':'v'}"),
    D("object: comma at the end", "{\"k\":7,}"),
    D("object: a comment at the end", "{\"k\":\"v\"}/**/"),
    D("object: an open comment at the end", "{\"k\":\"v\"}/**//"),
    D("object: a line comment at the end", "{\"k\":\"v\"}//"),
    D("object: half a comment at the end", "{\"k\":\"v\"}/"),
    D("object: two commas", "{\"k\":\"v\",,\"l\":\"w\"}"),
    D("object: key without quotes", "{k: \"v\"}"),
    D("object: value not closed", "{\"k\":\"v"),
    D("object: a text alone", "{ \"foo\" : \"bar\", \"k\" }"),
    D("object: a hash at the end", "{\"k\":\"v\"}#"),
};

static const struct badjson strings[] = {
    D("text: a space alone", " "),
    D("string: high surrogate, then a backslash", "[\"\\uD83D\\\"]"),
    D("string: high surrogate, then half an escape", "[\"\\uD83D\\u\"]"),
    D("string: high surrogate, one digit", "[\"\\uD83D\\ud\"]"),
    D("string: high surrogate, digit and x", "[\"\\uD83D\\udx\"]"),
    D("string: a letter without quotes", "[\xc3\xb6]"),
    D("string: backslash and a NUL byte", "[\"\\\0\"]"),
    D("string: hexadecimal escape", "[\"\\x41\"]"),
    D("string: three backslashes", "[\"\\\\\\\"]"),
    D("string: backslash and a tab", "[\"\\\t\"]"),
    D("string: backslash and a picture", "[\"\\\xf0\x9f\x90\x8e\"]"),
    D("string: a backslash at the end", "[\"\\\"]"),
    D("string: escape of three digits", "[\"\\u00B\"]"),
    D("string: low surrogate cut off", "[\"\\uD83D\\uDC\"]"),
    D("string: low surrogate of bad digits", "[\"\\uD83Dx\\uDC0Ex\\u\"]"),
    D("string: bad byte in an escape", "[\"\\u\xe6\"]"),
    D("string: escaped letter a", "[\"\\a\"]"),
    D("string: escape of letters", "[\"\\uQQQQ\"]"),
    D("string: bad byte behind a backslash", "[\"\\\xe6\"]"),
    D("string: an escape before the quote", "[\\u0041\"k\"]"),
    D("string: no quotes, an escape", "[\\n]"),
    D("string: a quote alone", "\""),
    D("string: single quotes", "['k']"),
    D("string: letters alone", "abc"),
    D("string: cut off behind a backslash", "[\"\\"),
    D("string: a NUL byte", "[\"k\0k\"]"),
    D("string: a control character", "[\"k\x01k\"]"),
    D("string: a line break", "[\"new\nline\"]"),
    D("string: a tab", "[\"\t\"]"),
    D("string: capital U", "\"\\U0041\""),
    D("string: letters behind the end", "\"\"x"),
    D("string: high surrogate alone", "[\"\\uD83D\"]"),
    D("string: low surrogate alone", "[\"\\uDC0E\"]"),
    D("string: surrogates the wrong way round", "[\"\\uDC0E\\uD83D\"]"),
    D("string: two high surrogates", "[\"\\uD83D\\uD83D\"]"),
    D("string: high surrogate, then text", "[\"\\uD83Dabcdef\"]"),
    D("string: an escaped NUL", "[\"k\\u0000k\"]"),
    D("string: NUL in a key", "{\"k\\u0000\":7}"),
    D("string: overlong slash", "[\"\xc0\xaf\"]"),
    D("string: overlong NUL", "[\"\xc0\x80\"]"),
    D("string: overlong, three bytes", "[\"\xe0\x80\xaf\"]"),
    D("string: overlong, four bytes", "[\"\xf0\x80\x80\xaf\"]"),
    D("string: a surrogate in UTF-8", "[\"\xed\xa0\xbd\"]"),
    D("string: above U+10FFFF", "[\"\xf4\x90\x80\x80\"]"),
    D("string: five bytes", "[\"\xf8\x88\x80\x80\x80\"]"),
    D("string: a continuation byte alone", "[\"\x80\"]"),
    D("string: Latin-1", "[\"\xe9\"]"),
    D("string: UTF-8 cut off by the quote", "[\"\xe2\x82\"]"),
    D("string: UTF-8 cut off by the end", "[\"\xe2\x82"),
    D("string: byte 0xff", "[\"\xff\"]"),
    D("string: not closed", "[\"k"),
};

static const struct badjson structures[] = {
    D("structure: angle brackets", "<.>"),
    D("structure: null in angle brackets", "[<null>]"),
    D("structure: a letter behind an array", "[7]x"),
    D("structure: an array closed once more", "[7]]"),
    D("structure: an array with an open string", "[\"kkk]"),
    D("structure: an identifier", "k\xc3\xa5"),
    D("structure: True", "[True]"),
    D("structure: FALSE", "[FALSE]"),
    D("structure: Null", "[Null]"),
    D("structure: closed, never opened", "7]"),
    D("structure: comma for the end", "{\"k\":true,"),
    D("structure: two arrays", "[][]"),
    D("structure: an end alone", "]"),
    D("structure: a brace alone", "}"),
    D("structure: part of a byte order mark", "\xef\xbb{}"),
    D("structure: a bad byte alone", "\xe6"),
    D("structure: a bracket alone", "["),
    D("structure: nothing", ""),
    D("structure: a NUL byte outside of strings", "[\0]"),
    D("structure: NUL bytes behind the end", "{}\0\0"),
    D("structure: a letter behind a number", "7@"),
    D("structure: an object closed twice", "{}}"),
    D("structure: an object without its value", "{\"\":"),
    D("structure: a comment in an object", "{\"k\":/*c*/\"v\"}"),
    D("structure: a text behind an object", "{\"k\": true} \"x\""),
    D("structure: an apostrophe in an open array", "['"),
    D("structure: a comma in an open array", "[,"),
    D("structure: an object in an open array", "[{"),
    D("structure: a quote in an open array", "[\"k"),
    D("structure: a text in an open array", "[\"k\""),
    D("structure: a brace open", "{"),
    D("structure: a brace closed by a bracket", "{]"),
    D("structure: a comma in an open object", "{,"),
    D("structure: an array in an open object", "{["),
    D("structure: a quote in an open object", "{\"k"),
    D("structure: single quotes in an open object", "{'k'"),
    D("structure: opened again and again", "[\"\\{[\"\\{[\"\\{[\"\\{"),
    D("structure: a letter of two bytes", "\xc3\xa9"),
    D("structure: a star", "*"),
    D("structure: a hash behind an object", "{\"k\":\"v\"}#{}"),
    D("structure: a word joiner in an array", "[\xe2\x81\xa0]"),
    D("structure: an escaped line break before a text", "[\\u000A\"\"]"),
    D("structure: an array not closed", "[7"),
    D("structure: half of null, not closed", "[ false, nul"),
    D("structure: half of true, not closed", "[ false, tru"),
    D("structure: half of false, not closed", "[ true, fals"),
    D("structure: an object not closed", "{\"k\":\"v\""),
    D("structure: an identifier of two bytes", "\xc3\xa5k"),
    D("structure: a byte order mark alone", "\xef\xbb\xbf"),
    D("structure: a byte order mark before an object", "\xef\xbb\xbf{}"),
    D("structure: a form feed", "[\f]"),
    D("structure: a vertical tab", "[\v]"),
    D("structure: a word joiner", "[\xe2\x81\xa0 7]"),
    D("structure: a space that is none of ASCII's", "[\xc2\xa0]"),
    D("structure: a line comment", "// c\n{}"),
    D("structure: UTF-16", "\xff\xfe[\0]\0"),
    D("structure: undefined", "undefined"),
    D("structure: a semicolon behind the end", "{};"),
    D("structure: two texts on two lines", "{}\n{}"),
};

static const struct badjson duplicates[] = {
    D("duplicate: the same value", "{\"k\":7,\"k\":7}"),
    D("duplicate: another value", "{\"k\":7,\"l\":1,\"k\":8}"),
    D("duplicate: one of them escaped", "{\"k\":7,\"\\u006b\":8}"),
    D("duplicate: empty keys", "{\"\":7,\"\":8}"),
    D("duplicate: deep inside", "[{\"a\":[{\"k\":{},\"k\":[]}]}]"),
    D("duplicate: around an object with the same key",
      "{\"k\":{\"k\":1},\"l\":2,\"k\":3}"),
};

static const struct badjson good[] = {
    D("an object", "{}"),
    D("an array", "[]"),
    D("white space all over", " \t\r\n[ 7 ,\n{ \"k\" : null } ] \n"),
    D("a text at the top", "\"k\""),
    D("a number at the top", "-0"),
    D("a literal at the top", "null"),
    D("the largest double", "[1.7976931348623157e308]"),
    D("a power of ten of 309 digits", "[1e308,-1E+308]"),
    D("as small as nothing", "[7e-9999,0e999,0.0]"),
    D("all the escapes", "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u20aC\"]"),
    D("a pair of surrogates", "[\"\\uD83D\\uDC0E\"]"),
    D("UTF-8 of every length", "[\"k\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8e\"]"),
    D("a byte order mark within a text", "[\"\xef\xbb\xbf\"]"),
    D("the last code point", "[\"\xf4\x8f\xbf\xbf\\udbff\\udfff\"]"),
    D("the delete character", "[\"\x7f\"]"),
    D("the same key in two objects", "[{\"k\":7},{\"k\":{\"k\":8}}]"),
    D("keys that differ in case", "{\"k\":7,\"K\":8}"),
    D("an empty key", "{\"\":0}"),
    D("an escaped backslash and a u", "[\"\\\\u0000\"]"),
    D("many digits", "[0.12345678901234567890123456789012345678901234567]"),
};

enum { N_DEEP = 5, DEEP_SIZE = 100000 };

/* Documents too large to write down. */
static void add_deep(struct badjson *list)
{
    static char brackets[DEEP_SIZE], objects_open[DEEP_SIZE];
    static char nested[2 * 65], mixed[DEEP_SIZE], digits[DEEP_SIZE];
    memset(brackets, '[', sizeof brackets);
    for (size_t i = 0; i < sizeof objects_open; i++)
        objects_open[i] = "[{\"\":"[i % 5];
    memset(nested, '[', 65);
    memset(nested + 65, ']', 65);
    for (size_t i = 0; i < sizeof mixed; i++)
        mixed[i] = "{\"k\":["[i % 6];
    memset(digits, '9', sizeof digits);
    list[0] = (struct badjson){"depth: 100,000 open arrays", brackets,
                               sizeof brackets};
    list[1] = (struct badjson){"depth: 20,000 arrays of objects", objects_open,
                               sizeof objects_open};
    list[2] = (struct badjson){"depth: 65, closed", nested, sizeof nested};
    list[3] = (struct badjson){"depth: objects of arrays", mixed, sizeof mixed};
    list[4] = (struct badjson){"number: 100,000 digits", digits, sizeof digits};
}

const struct badjson *badjson_syntax(size_t *ret_n)
{
    static struct badjson all[ARRAY_LEN(arrays) + ARRAY_LEN(numbers) +
                              ARRAY_LEN(objects) + ARRAY_LEN(strings) +
                              ARRAY_LEN(structures) + N_DEEP];
    struct badjson *p = all;
#define APPEND(list)               \
    memcpy(p, list, sizeof(list)); \
    p += ARRAY_LEN(list)
    APPEND(arrays);
    APPEND(numbers);
    APPEND(objects);
    APPEND(strings);
    APPEND(structures);
#undef APPEND
    add_deep(p);
    *ret_n = ARRAY_LEN(all);
    return all;
}

const struct badjson *badjson_duplicates(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(duplicates);
    return duplicates;
}

const struct badjson *badjson_good(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(good);
    return good;
}
