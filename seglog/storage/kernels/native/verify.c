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
    DIGITS = SEGLOG_CRC_DIGITS
};
_Static_assert(NAME_BYTES == 9 && ENTRY_BYTES == NAME_BYTES + DIGITS + 1, "name, digits, end");

static struct span last(struct span bytes, size_t most)
{
    return bytes.size <= most ? bytes : span_of(bytes.at + (bytes.size - most), most);
}

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

/* A name with a few bits flipped still says that there was a checksum, and so do the right digits under
 * another name. `_verify` in record.py says why.
 */
static bool own_check_is_right(const struct record *record, struct span tail)
{
    const uint8_t *stored = digits_in(tail);
    bool is_near = flips_of_name(tail) <= SEGLOG_MAX_NAME_FLIPS;
    if (!is_near && !(stored && are_digits(stored)))
        return true;
    uint8_t digits[DIGITS];
    struct span covered = span_of(record->bytes.at, record->bytes.size - ENTRY_BYTES);
    own_check_digits(crc32_of(covered) & SEGLOG_CRC_MASK, digits);
    return is_entry(tail, digits) || !(is_near || memcmp(stored, digits, DIGITS) == 0);
}

static bool has_name(struct span tail)
{
    return tail.size >= NAME_BYTES && memcmp(tail.at, crc_name, NAME_BYTES) == 0;
}

bool record_verifies(const struct record *record)
{
    struct span tail = last(record->properties, ENTRY_BYTES);
    if (!own_check_is_right(record, tail))
        return false;
    if (!has_name(tail) && properties_look_torn(record->properties))
        return false;
    return !record->body.size || (crc32_of(record->body) & SEGLOG_CRC_MASK) == record->body_crc;
}
