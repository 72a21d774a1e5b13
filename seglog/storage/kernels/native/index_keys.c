/* Keys of records for the key index. */

#include "growable.h"
#include "python_api.h"
#include "record.h"

/* SipHash-1-3: without the seed, an attacker cannot construct collisions. */
struct hash_seed {
    uint64_t first, second;
};

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotated(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void mix(struct state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 = rotated(s->v2, 32);
}

static void take_word(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s);
    s->v0 ^= word;
}

/* Reads words in the machine's byte order: no hash leaves the process. */
static uint64_t keyed_hash(struct hash_seed seed, struct span bytes)
{
    struct state s = {
        seed.first ^ 0x736f6d6570736575,
        seed.second ^ 0x646f72616e646f6d,
        seed.first ^ 0x6c7967656e657261,
        seed.second ^ 0x7465646279746573,
    };
    uint64_t word, last = (uint64_t)bytes.size << 56;
    for (; bytes.size >= sizeof word; bytes = span_of(bytes.at + sizeof word, bytes.size - sizeof word)) {
        memcpy(&word, bytes.at, sizeof word);
        take_word(&s, word);
    }
    for (size_t i = 0; i < bytes.size; i++)
        last |= (uint64_t)bytes.at[i] << (8 * i);
    take_word(&s, last);
    s.v2 ^= 0xff;
    for (int round = 0; round < 3; round++)
        mix(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* Returns the absolute value of Java's hash, 0 for the minimum, which has none. */
static int32_t magnitude(uint32_t hash)
{
    int32_t code = (int32_t)hash;
    return code >= 0 ? code : code == INT32_MIN ? 0 : -code;
}

/* Adds a key; only counts it if there is no room. */
static void add(struct log_keys *keys, uint32_t hash, const struct record *record, int64_t phy_offset)
{
    if (keys->count < keys->room) {
        uint8_t *row = keys->rows + keys->count * SEGLOG_KEY_ROW_SIZE;
        set_row_i32(row + SEGLOG_KEY_ROW_KEY_HASH_AT, magnitude(hash));
        set_row_i64(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT, phy_offset);
        set_row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT, record->store_timestamp_ms);
    }
    keys->count++;
}

/* Adds the keys of a record from the values of its properties; only counts a key if there is no room. Keys are
 * separated by single spaces; an empty piece is no key.
 */
static void keys_of_values(struct log_keys *keys, const struct record *record,
                           const struct index_values *values, uint32_t hash_before, int64_t phy_offset,
                           bool tags)
{
    if ((record->sys_flag & SEGLOG_TRANSACTION_MASK) == SEGLOG_TRANSACTION_ROLLBACK)
        return;
    if (values->unique_key.size)
        add(keys, java_hash(hash_before, values->unique_key), record, phy_offset);
    struct span joined = values->keys;
    while (joined.size) {
        struct span piece = span_take_piece(&joined, ' ');
        if (piece.size)
            add(keys, java_hash(hash_before, piece), record, phy_offset);
    }
    if (tags && values->tags.size) {
        uint32_t before_tag = java_hash(hash_before, TEXT("T#"));
        add(keys, java_hash(before_tag, values->tags), record, phy_offset);
    }
}

/* Whether a record has a key, as its unique key or one of its keys. */
static bool record_has_key(const struct record *record, struct span key)
{
    struct index_values values = index_values_of(record->properties);
    if (values.unique_key.size && spans_are_equal(values.unique_key, key))
        return true;
    struct span joined = values.keys;
    while (joined.size)
        if (spans_are_equal(span_take_piece(&joined, ' '), key))
            return true;
    return false;
}

/* Returns a 64-bit digest of a key, never 0; two keys almost never have the same digest. */
static uint64_t key_digest(struct hash_seed seed, struct span topic, struct span key)
{
    struct hash_seed of_topic = {seed.first ^ keyed_hash(seed, topic), seed.second};
    uint64_t digest = keyed_hash(of_topic, key);
    return digest ? digest : 1;
}

/* Writes the digests of the keys of a record that have a given hash, as far as there is room; returns their
 * number.
 */
static size_t key_digests_of(const struct record *record, int32_t hash, struct hash_seed seed,
                             uint64_t *digests, size_t room)
{
    struct index_values values = index_values_of(record->properties);
    uint32_t before = key_hash_before(record->topic);
    struct span joined = values.keys, piece = values.unique_key;
    size_t count = 0;
    for (;;) {
        if (piece.size && magnitude(java_hash(before, piece)) == hash) {
            if (count < room)
                digests[count] = key_digest(seed, record->topic, piece);
            count++;
        }
        if (!joined.size)
            return count;
        piece = span_take_piece(&joined, ' ');
    }
}

static bool add_lost(struct log_keys *keys, size_t position)
{
    if (!growable_reserve(&keys->lost, keys->lost_count, &keys->lost_room, sizeof *keys->lost))
        return false;
    settle_memory();
    keys->lost[keys->lost_count++] = position;
    return true;
}

static enum noted add_keys(struct log_keys *keys, const struct record *record,
                           const struct index_values *values, uint32_t hash_before, int64_t phy_offset,
                           bool tags)
{
    size_t before = keys->count;
    keys_of_values(keys, record, values, hash_before, phy_offset, tags);
    while (keys->count > keys->room) {
        keys->count = before;
        if (keys->are_borrowed)
            return NO_ROOM;
        if (!growable_grow(&keys->rows, &keys->room, SEGLOG_KEY_ROW_SIZE))
            return NO_MEMORY;
        settle_memory();
        keys_of_values(keys, record, values, hash_before, phy_offset, tags);
    }
    return NOTED;
}

enum noted log_keys_note(struct log_keys *keys, const struct record *record,
                         const struct index_values *values, uint32_t hash_before, size_t position,
                         int64_t phy_offset, bool tags)
{
    enum noted noted = NOTED;
    if (!is_tombstone(record->bytes.at))
        noted = add_keys(keys, record, values, hash_before, phy_offset, tags);
    else if (!add_lost(keys, position))
        noted = NO_MEMORY;
    if (noted == NOTED) {
        keys->with_crc += record_has_crc_property(record);
        keys->placeholders += record_is_placeholder(record);
    }
    return noted;
}

void log_keys_free(struct log_keys *keys)
{
    if (!keys->are_borrowed)
        free(keys->rows);
    free(keys->lost);
}

/* Reads the keys of the records from `position` on, and moves `position` behind them: up to the first bytes that
 * are no whole record, or a record whose keys do not fit. Checksums are not checked.
 */
struct keys_job {
    struct log_keys keys;
    struct span log;
    int64_t phy_offset;
    size_t position;
    bool tags, rows_only, has_memory;
};

static void keys_job(void *state)
{
    struct keys_job *job = state;
    struct record record;
    enum noted noted = NOTED;
    while (record_read_at(job->log, job->position, job->phy_offset, &record)) {
        struct index_values values = index_values_of(record.properties);
        uint32_t before = key_hash_before(record.topic);
        int64_t place = job->phy_offset + (int64_t)job->position;
        noted = job->rows_only
                    ? add_keys(&job->keys, &record, &values, before, place, job->tags)
                    : log_keys_note(&job->keys, &record, &values, before, job->position, place, job->tags);
        if (noted != NOTED)
            break;
        job->position += record.bytes.size;
    }
    job->has_memory = noted != NO_MEMORY;
}

static PyObject *result_of(const struct log_keys *keys)
{
    return Py_BuildValue(
        "(NNnn)",
        PyBytes_FromStringAndSize((const char *)keys->rows, (Py_ssize_t)(keys->count * SEGLOG_KEY_ROW_SIZE)),
        list_of_positions(keys->lost, keys->lost_count), (Py_ssize_t)keys->with_crc,
        (Py_ssize_t)keys->placeholders);
}

PyObject *py_index_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *result = NULL;
    int tags;
    bool is_possible;
    if (!PyArg_ParseTuple(args, "y*Op", &view, &offset, &tags))
        return NULL;
    struct keys_job job = {.log = span_in(&view), .tags = tags, .has_memory = true};
    if (py_to_phy_offset(offset, &job.phy_offset, &is_possible) &&
        (!is_possible || call_guarded(&view, keys_job, &job)))
        result = job.has_memory ? result_of(&job.keys) : PyErr_NoMemory();
    log_keys_free(&job.keys);
    PyBuffer_Release(&view);
    return result;
}

PyObject *py_key_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, rows;
    long long phy_offset;
    Py_ssize_t start;
    int tags;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*Lnpw*", &view, &phy_offset, &start, &tags, &rows))
        return NULL;
    if (phy_offset < 0 || start < 0 || start > view.len) {
        PyErr_SetString(PyExc_ValueError, "keys are those of records within the buffer");
    } else {
        struct keys_job job = {
            .keys = {.rows = rows.buf, .room = (size_t)rows.len / SEGLOG_KEY_ROW_SIZE, .are_borrowed = true},
            .log = span_in(&view),
            .phy_offset = phy_offset,
            .position = (size_t)start,
            .tags = tags,
            .rows_only = true,
        };
        if (call_guarded(&view, keys_job, &job))
            result = Py_BuildValue("(nn)", (Py_ssize_t)job.keys.count, (Py_ssize_t)job.position);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&view);
    return result;
}

/* Records of a segment, by their places: `count` int64 in the byte order of the machine. */
struct places {
    struct span log;
    int64_t first;
    const uint8_t *at;
    size_t count;
};

static struct places places_in(const Py_buffer *log, long long first, const Py_buffer *places)
{
    return (struct places){span_in(log), first, places->buf, (size_t)places->len / sizeof(int64_t)};
}

static int64_t place_at(const struct places *places, size_t i)
{
    return row_i64(places->at + i * sizeof(int64_t));
}

static bool read_place(const struct places *places, size_t i, struct record *record)
{
    int64_t place = place_at(places, i);
    return places->first >= 0 && place >= places->first &&
           record_read_at(places->log, (size_t)(place - places->first), places->first, record);
}

struct have_job {
    struct places places;
    struct span key;
    uint8_t *have;
};

/* Bytes that cannot be read as a record count as having the key: they may have any. */
static void have_job(void *state)
{
    struct have_job *job = state;
    struct record record;
    for (size_t i = 0; i < job->places.count; i++)
        job->have[i] = !read_place(&job->places, i, &record) || record_has_key(&record, job->key);
}

PyObject *py_have_key(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, places, key;
    long long first;
    if (!PyArg_ParseTuple(args, "y*Ly*y*", &view, &first, &places, &key))
        return NULL;
    struct have_job job = {.places = places_in(&view, first, &places), .key = span_in(&key)};
    PyObject *have = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)job.places.count);
    if (have) {
        job.have = (uint8_t *)PyBytes_AsString(have);
        if (!call_guarded(&view, have_job, &job))
            Py_CLEAR(have);
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&places);
    PyBuffer_Release(&view);
    return have;
}

static bool take_seed(const Py_buffer *bytes, struct hash_seed *seed)
{
    if (bytes->len != sizeof *seed) {
        PyErr_SetString(PyExc_ValueError, "a seed has 16 bytes");
        return false;
    }
    memcpy(seed, bytes->buf, sizeof *seed);
    return true;
}

PyObject *py_key_digest(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer topic, key, bytes;
    struct hash_seed seed;
    PyObject *digest = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*", &topic, &key, &bytes))
        return NULL;
    if (take_seed(&bytes, &seed))
        digest = PyLong_FromUnsignedLongLong(key_digest(seed, span_in(&topic), span_in(&key)));
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&key);
    PyBuffer_Release(&topic);
    return digest;
}

struct digests_job {
    struct places places;
    int32_t hash;
    struct hash_seed seed;
    uint64_t *digests;
};

/* A record must have as many keys of the hash as consecutive entries lead to it; otherwise their digests are
 * unknown. */
static void digests_job(void *state)
{
    struct digests_job *job = state;
    struct record record;
    for (size_t i = 0, end; i < job->places.count; i = end) {
        for (end = i + 1; end < job->places.count && place_at(&job->places, end) == place_at(&job->places, i);
             end++)
            ;
        if (!read_place(&job->places, i, &record) ||
            key_digests_of(&record, job->hash, job->seed, job->digests + i, end - i) != end - i)
            memset(job->digests + i, 0, (end - i) * sizeof *job->digests);
    }
}

PyObject *py_key_digests(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, places, bytes;
    long long first;
    int hash;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*Ly*iy*", &view, &first, &places, &hash, &bytes))
        return NULL;
    struct digests_job job = {.places = places_in(&view, first, &places), .hash = hash};
    if (take_seed(&bytes, &job.seed)) {
        job.digests = calloc(job.places.count + 1, sizeof *job.digests);
        if (!job.digests)
            PyErr_NoMemory();
        else if (call_guarded(&view, digests_job, &job))
            result = PyBytes_FromStringAndSize((const char *)job.digests,
                                               (Py_ssize_t)(job.places.count * sizeof *job.digests));
        free(job.digests);
    }
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&places);
    PyBuffer_Release(&view);
    return result;
}
