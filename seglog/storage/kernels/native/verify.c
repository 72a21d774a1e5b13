/* Whether a record is as it was written: its own check, that of its body, and torn properties. */

#include <string.h>

#include "../layout.h"
#include "crc32.h"
#include "own_check.h"
#include "properties.h"
#include "record.h"

static const char crc_name[] = SEGLOG_CRC_NAME;
enum {
    NAME_BYTES = sizeof crc_name - 1,
    ENTRY_BYTES = SEGLOG_CRC_PROPERTY_BYTES,
    DIGITS = SEGLOG_CRC_DIGITS,
    JOINED_LEAST = 1024 /* bytes of body: a second look at fewer takes less than the joining */
};
_Static_assert(NAME_BYTES == 9 && ENTRY_BYTES == NAME_BYTES + DIGITS + 1, "name, digits, end");

/* In how many bits the front of the tail differs from the name; a short one is compared with its end. */
static int flips_of_name(struct span tail)
{
    uint8_t front[NAME_BYTES] = {0};
    size_t given = tail.size < NAME_BYTES ? tail.size : NAME_BYTES;
    uint64_t found, expected;
    if (given)
        memcpy(front + NAME_BYTES - given, tail.at, given);
    memcpy(&found, front, 8);
    memcpy(&expected, crc_name, 8);
    return __builtin_popcountll(found ^ expected) + __builtin_popcount((unsigned)(front[8] ^ crc_name[8]));
}

/* The digits of the entry that may end the tail, NULL where there is no room for them. */
static const uint8_t *digits_in(struct span tail)
{
    return tail.size > DIGITS ? tail.at + tail.size - 1 - DIGITS : NULL;
}

static bool are_digits(const uint8_t *at)
{
    for (int i = 0; i < DIGITS; i++)
        if (at[i] < '0' || at[i] > '9')
            return false;
    return true;
}

static bool is_entry(struct span tail, const uint8_t *digits)
{
    return tail.size == ENTRY_BYTES && memcmp(tail.at, crc_name, NAME_BYTES) == 0 &&
           memcmp(tail.at + NAME_BYTES, digits, DIGITS) == 0 &&
           tail.at[ENTRY_BYTES - 1] == SEGLOG_ENTRY_END;
}

/* The CRC of all but the entry. The body is most of it: its own CRC is there already, and is joined in. */
static uint32_t covered_crc(const struct record *record, uint32_t body_crc)
{
    const uint8_t *start = record->bytes.at, *end = start + record->bytes.size - ENTRY_BYTES;
    struct span body = record->body;
    if (body.size < JOINED_LEAST || body.at + body.size > end || !crc32_multiplies())
        return crc32_of(span_of(start, (size_t)(end - start)));
    uint32_t head_crc = crc32_of(span_of(start, (size_t)(body.at - start)));
    const uint8_t *behind = body.at + body.size;
    return crc32_on(crc32_joined(head_crc, body_crc, body.size), span_of(behind, (size_t)(end - behind)));
}

/* A name with a few bits flipped still says that there was a checksum, and so do the right digits under
 * another name. `_verify` in record.py says why.
 */
static bool own_check_is_right(const struct record *record, struct span tail, uint32_t body_crc)
{
    const uint8_t *stored = digits_in(tail);
    bool is_near = flips_of_name(tail) <= SEGLOG_MAX_NAME_FLIPS;
    if (!is_near && !(stored && are_digits(stored)))
        return true;
    uint8_t digits[DIGITS];
    own_check_digits(covered_crc(record, body_crc) & SEGLOG_CRC_MASK, digits);
    return is_entry(tail, digits) || !(is_near || memcmp(stored, digits, DIGITS) == 0);
}

static bool has_name(struct span tail)
{
    return tail.size >= NAME_BYTES && memcmp(tail.at, crc_name, NAME_BYTES) == 0;
}

bool record_verifies(const struct record *record)
{
    struct span tail = span_last(record->properties, ENTRY_BYTES);
    uint32_t body_crc = crc32_of(record->body);
    if (record->body.size && (body_crc & SEGLOG_CRC_MASK) != record->body_crc)
        return false;
    if (!own_check_is_right(record, tail, body_crc))
        return false;
    return has_name(tail) || !properties_look_torn(record->properties);
}
