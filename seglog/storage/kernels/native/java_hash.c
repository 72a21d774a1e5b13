#include "java_hash.h"

#include <stdbool.h>
#include <string.h>

enum { REPLACEMENT = 0xFFFD };

/* Which first bytes there are, how many follow them, and between what the second must lie: neither
 * overlong forms nor halves of pairs are text (Unicode, table 3-7).
 */
struct form {
    uint8_t first, last, more, least_second, most_second;
};

static const struct form forms[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF},
    {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF},
    {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

static const struct form *form_of(uint8_t first)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].first <= first && first <= forms[i].last)
            return &forms[i];
    return NULL;
}

/* Takes one character beyond ASCII off the front of the text. A piece that could have become a character
 * is replaced as a whole: the byte that breaks it begins the next.
 */
static uint32_t take_character(struct span *text)
{
    const struct form *form = form_of(text->at[0]);
    size_t taken = 1;
    uint32_t character = REPLACEMENT;
    if (form) {
        uint8_t least = form->least_second, most = form->most_second;
        character = text->at[0] & (0x3Fu >> form->more);
        while (taken <= form->more && taken < text->size && text->at[taken] >= least &&
               text->at[taken] <= most) {
            character = character << 6 | (text->at[taken++] & 0x3F);
            least = 0x80;
            most = 0xBF;
        }
        if (taken <= form->more)
            character = REPLACEMENT;
    }
    *text = span_of(text->at + taken, text->size - taken);
    return character;
}

static uint32_t with_unit(uint32_t code, uint32_t unit)
{
    return 31 * code + unit;
}

/* Powers of 31, modulo 2**32. */
#define P2 (31u * 31u)
#define P4 (P2 * P2)

enum { WORD = 8 };

/* Eight characters at a time: a product for each that waits for no other, instead of one after the other. */
static uint32_t with_word(uint32_t code, const uint8_t *at)
{
    uint32_t high = at[0] * (P2 * 31u) + at[1] * P2 + at[2] * 31u + at[3];
    uint32_t low = at[4] * (P2 * 31u) + at[5] * P2 + at[6] * 31u + at[7];
    return code * (P4 * P4) + (high * P4 + low);
}

static bool is_ascii_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return (word & 0x8080808080808080u) == 0;
}

uint32_t java_hash_on(uint32_t code, struct span text)
{
    while (text.size) {
        if (text.size >= WORD && is_ascii_word(text.at)) {
            code = with_word(code, text.at);
            text = span_of(text.at + WORD, text.size - WORD);
            continue;
        }
        if (text.at[0] < 0x80) {
            code = with_unit(code, text.at[0]);
            text = span_of(text.at + 1, text.size - 1);
            continue;
        }
        uint32_t character = take_character(&text);
        if (character >= 0x10000) {
            code = with_unit(code, 0xD800 + ((character - 0x10000) >> 10));
            character = 0xDC00 + (character & 0x3FF);
        }
        code = with_unit(code, character);
    }
    return code;
}

int32_t java_hash(struct span text)
{
    return (int32_t)java_hash_on(0, text);
}
