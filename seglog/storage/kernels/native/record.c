/* Reads records: the same checks in the same order as `examine`, which also says what is wrong. */

#include "record.h"

#define NAMED(literal) TEXT(literal "\001")

static void take_value(struct span entry, struct span name, struct span *value)
{
    if (entry.size > name.size && span_begins_with(entry, name))
        *value = span_after(entry, name.size);
}

struct span property_value(struct span properties, struct span name)
{
    struct span value = {NULL, 0};
    while (properties.size >= name.size) {
        size_t entry_size = span_size_up_to(properties, SEGLOG_ENTRY_END);
        take_value(span_of(properties.at, entry_size), name, &value);
        if (entry_size == properties.size)
            break;
        properties = span_after(properties, entry_size + 1);
    }
    return value;
}

struct index_values index_values_of(struct span properties)
{
    struct index_values found = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    while (properties.size) {
        size_t entry_size = span_size_up_to(properties, SEGLOG_ENTRY_END);
        struct span entry = span_of(properties.at, entry_size);
        switch (properties.at[0]) { /* the three differ in their first byte */
        case 'U':
            take_value(entry, NAMED(SEGLOG_UNIQ_KEY_NAME), &found.unique_key);
            break;
        case 'K':
            take_value(entry, NAMED(SEGLOG_KEYS_NAME), &found.keys);
            break;
        case 'T':
            take_value(entry, NAMED(SEGLOG_TAGS_NAME), &found.tags);
            break;
        default:
            break;
        }
        if (entry_size == properties.size)
            break;
        properties = span_after(properties, entry_size + 1);
    }
    return found;
}

bool properties_hold(struct span properties, struct span text)
{
    while (properties.size >= text.size) {
        size_t skipped = span_size_up_to(span_of(properties.at, properties.size - text.size + 1), text.at[0]);
        if (skipped > properties.size - text.size)
            return false;
        properties = span_after(properties, skipped);
        if (span_begins_with(properties, text))
            return true;
        properties = span_after(properties, 1);
    }
    return false;
}

static size_t leading_digits(struct span bytes, size_t most)
{
    size_t count = 0;
    while (count < most && count < bytes.size && bytes.at[count] >= '0' && bytes.at[count] <= '9')
        count++;
    return count;
}

/* Whether what stands behind the name of the CRC property is cut short, or has the head of a record behind
 * it. */
static bool is_misplaced_check(struct span rest)
{
    size_t digits = leading_digits(rest, SEGLOG_CRC_DIGITS);
    if (digits == rest.size)
        return true;
    return digits == SEGLOG_CRC_DIGITS && rest.size > digits + 1 && rest.at[digits] == SEGLOG_ENTRY_END &&
           rest.at[digits + 1] == 0;
}

static bool hold_misplaced_check(struct span properties)
{
    struct span name = TEXT(SEGLOG_CRC_NAME);
    while (properties.size >= name.size) {
        properties = span_after(properties, span_size_up_to(properties, name.at[0]));
        if (span_begins_with(properties, name) && is_misplaced_check(span_after(properties, name.size)))
            return true;
        if (properties.size)
            properties = span_after(properties, 1);
    }
    return false;
}

/* look_torn() in properties.py says why. */
bool properties_look_torn(struct span properties)
{
    static const uint8_t zeros[SEGLOG_TORN_NULS];
    static const size_t cut_size =
        SEGLOG_CRC_PROPERTY_BYTES - 1; /* the name and what the end left of the rest */
    if (properties.size == 0)
        return false;
    uint8_t last = properties.at[properties.size - 1];
    if (span_size_up_to(properties, 0) == properties.size)
        return last != SEGLOG_ENTRY_END && hold_misplaced_check(span_last(properties, cut_size));
    return last == 0 || properties_hold(properties, span_of(zeros, sizeof zeros)) ||
           hold_misplaced_check(properties);
}

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
    *text = span_after(*text, taken);
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

uint32_t java_hash(uint32_t code, struct span text)
{
    while (text.size) {
        if (text.size >= WORD && is_ascii_word(text.at)) {
            code = with_word(code, text.at);
            text = span_after(text, WORD);
            continue;
        }
        if (text.at[0] < 0x80) {
            code = with_unit(code, text.at[0]);
            text = span_after(text, 1);
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

uint32_t key_hash_before(struct span topic)
{
    return java_hash(java_hash(0, topic), TEXT("#"));
}

enum { MS_PER_S = 1000 };

static const int32_t delay_levels_s[] = SEGLOG_DELAY_LEVELS_S;
enum { HIGHEST_LEVEL = sizeof delay_levels_s / sizeof delay_levels_s[0] };

/* The level that a DELAY property asks for, capped at the highest; 0 if it asks for none. */
static int delay_level(struct span value)
{
    int level = 0;
    for (size_t at = 0; at < value.size; at++) {
        if (value.at[at] < '0' || value.at[at] > '9')
            return 0;
        level = level * 10 + (value.at[at] - '0');
        if (level > HIGHEST_LEVEL)
            level = HIGHEST_LEVEL; /* and stays there: what follows is only looked at for being digits */
    }
    return level;
}

int64_t unit_tags_code(const struct record *record, struct span tag)
{
    if (spans_are_equal(record->topic, TEXT(SEGLOG_SCHEDULE_TOPIC))) {
        int level = delay_level(property_value(record->properties, NAMED(SEGLOG_DELAY)));
        if (level > 0) /* wraps as Java's sum of longs does */
            return (int64_t)((uint64_t)record->store_timestamp_ms +
                             (uint64_t)delay_levels_s[level - 1] * MS_PER_S);
    }
    return (int32_t)java_hash(0, tag);
}

/* Where the fields lie whose place depends on the lengths of the two addresses. */
struct head {
    size_t size, store_timestamp_ms_at, body_bytes_at;
};

static struct head head_of(int32_t sys_flag)
{
    static const struct head v4 = {SEGLOG_HEADS_0_SIZE, SEGLOG_HEADS_0_STORE_TIMESTAMP_MS_AT,
                                   SEGLOG_HEADS_0_BODY_BYTES_AT};
    static const struct head born_v6 = {SEGLOG_HEADS_16_SIZE, SEGLOG_HEADS_16_STORE_TIMESTAMP_MS_AT,
                                        SEGLOG_HEADS_16_BODY_BYTES_AT};
    static const struct head store_v6 = {SEGLOG_HEADS_32_SIZE, SEGLOG_HEADS_32_STORE_TIMESTAMP_MS_AT,
                                         SEGLOG_HEADS_32_BODY_BYTES_AT};
    static const struct head both_v6 = {SEGLOG_HEADS_48_SIZE, SEGLOG_HEADS_48_STORE_TIMESTAMP_MS_AT,
                                        SEGLOG_HEADS_48_BODY_BYTES_AT};
    switch (sys_flag & SEGLOG_HOST_BITS) {
    case SEGLOG_BORN_HOST_V6:
        return born_v6;
    case SEGLOG_STORE_HOST_V6:
        return store_v6;
    case SEGLOG_HOST_BITS:
        return both_v6;
    default:
        return v4;
    }
}

/* Takes `size` bytes off the front of what is left of a record. */
static bool take(struct span *rest, int64_t size, struct span *taken)
{
    if (size < 0 || (uint64_t)size > rest->size)
        return false;
    *taken = span_of(rest->at, (size_t)size);
    *rest = span_after(*rest, (size_t)size);
    return true;
}

static bool take_topic(struct span *rest, uint32_t magic, struct span *topic)
{
    struct span length;
    if (!take(rest, magic == SEGLOG_MAGIC_V1 ? 1 : 2, &length))
        return false;
    int64_t size = length.size == 1 ? (int64_t)settled(length.at[0]) : read_i16(length.at);
    return take(rest, size, topic);
}

/* They take all that is left; a negative length is one of none, as for RocketMQ. */
static bool take_properties(struct span *rest, struct span *properties)
{
    struct span length;
    if (!take(rest, 2, &length))
        return false;
    int16_t size = read_i16(length.at);
    return take(rest, size > 0 ? size : 0, properties) && rest->size == 0;
}

static bool read_tail(struct span head_bytes, struct head head, uint32_t magic, struct record *found)
{
    struct span rest = span_after(head_bytes, head.size);
    return take(&rest, read_i32(head_bytes.at + head.body_bytes_at), &found->body) &&
           take_topic(&rest, magic, &found->topic) && take_properties(&rest, &found->properties);
}

size_t record_store_timestamp_at(int32_t sys_flag)
{
    return head_of(sys_flag).store_timestamp_ms_at;
}

bool record_read(struct span bytes, int64_t phy_offset, struct record *found)
{
    if (bytes.size < SEGLOG_MIN_RECORD_BYTES)
        return false;
    const uint8_t *at = bytes.at;
    int32_t size = read_i32(at + SEGLOG_HEADS_0_SIZE_BYTES_AT);
    uint32_t magic = read_u32(at + SEGLOG_HEADS_0_MAGIC_AT);
    if (magic != SEGLOG_MAGIC_V1 && magic != SEGLOG_MAGIC_V2)
        return false;
    if (size < SEGLOG_MIN_RECORD_BYTES || (size_t)size > bytes.size)
        return false;
    found->queue_id = read_i32(at + SEGLOG_HEADS_0_QUEUE_ID_AT);
    found->queue_offset = read_i64(at + SEGLOG_HEADS_0_QUEUE_OFFSET_AT);
    if (read_i64(at + SEGLOG_HEADS_0_PHY_OFFSET_AT) != phy_offset || found->queue_id < 0 ||
        found->queue_offset < 0)
        return false;
    found->bytes = span_of(at, (size_t)size);
    found->sys_flag = read_i32(at + SEGLOG_HEADS_0_SYS_FLAG_AT);
    struct head head = head_of(found->sys_flag);
    if (found->bytes.size < head.size)
        return false;
    found->body_crc = read_u32(at + SEGLOG_HEADS_0_BODY_CRC_AT);
    found->store_timestamp_ms = read_i64(at + head.store_timestamp_ms_at);
    return read_tail(found->bytes, head, magic, found);
}

static const char crc_name[] = SEGLOG_CRC_NAME;
enum {
    NAME_BYTES = sizeof crc_name - 1,
    ENTRY_BYTES = SEGLOG_CRC_PROPERTY_BYTES,
    DIGITS = SEGLOG_CRC_DIGITS,
    JOINED_LEAST = 1024 /* bytes of body: a second look at fewer takes less than the joining */
};
_Static_assert(NAME_BYTES == 9 && ENTRY_BYTES == NAME_BYTES + DIGITS + 1, "name, digits, end");

/* Writes the ten digits of a CRC as the property has them: least significant first. */
static void crc_digits(uint32_t crc, uint8_t *digits)
{
    for (int i = 0; i < DIGITS; i++, crc /= 10)
        digits[i] = (uint8_t)('0' + crc % 10);
}

void crc_property_write(uint32_t crc, uint8_t *property)
{
    memcpy(property, crc_name, NAME_BYTES);
    crc_digits(crc & SEGLOG_CRC_MASK, property + NAME_BYTES);
    property[ENTRY_BYTES - 1] = SEGLOG_ENTRY_END;
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

/* The digits of the property that may end the tail, NULL where there is no room for them. */
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
           memcmp(tail.at + NAME_BYTES, digits, DIGITS) == 0 && tail.at[ENTRY_BYTES - 1] == SEGLOG_ENTRY_END;
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
static bool crc_property_is_right(const struct record *record, struct span tail, uint32_t body_crc)
{
    const uint8_t *stored = digits_in(tail);
    bool is_near = flips_of_name(tail) <= SEGLOG_MAX_NAME_FLIPS;
    if (!is_near && !(stored && are_digits(stored)))
        return true;
    uint8_t digits[DIGITS];
    crc_digits(covered_crc(record, body_crc) & SEGLOG_CRC_MASK, digits);
    return is_entry(tail, digits) || !(is_near || memcmp(stored, digits, DIGITS) == 0);
}

bool record_has_crc_property(const struct record *record)
{
    struct span properties = record->properties;
    return properties.size >= ENTRY_BYTES &&
           span_begins_with(span_last(properties, ENTRY_BYTES), TEXT(SEGLOG_CRC_NAME));
}

bool record_is_placeholder(const struct record *record)
{
    struct span own = record->properties;
    if (read_i32(record->bytes.at + SEGLOG_HEADS_0_FLAG_AT) != SEGLOG_PLACEHOLDER_FLAG || record->body.size)
        return false;
    if (record_has_crc_property(record))
        own.size -= SEGLOG_CRC_PROPERTY_BYTES;
    return !own.size || spans_are_equal(own, TEXT(SEGLOG_PLACEHOLDER_MARK));
}

bool record_verifies(const struct record *record)
{
    struct span tail = span_last(record->properties, ENTRY_BYTES);
    uint32_t body_crc = crc32_of(record->body);
    if (record->body.size && (body_crc & SEGLOG_CRC_MASK) != record->body_crc)
        return false;
    if (!crc_property_is_right(record, tail, body_crc))
        return false;
    return span_begins_with(tail, TEXT(SEGLOG_CRC_NAME)) || !properties_look_torn(record->properties);
}
