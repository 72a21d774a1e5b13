/* Columns of many messages in the layout of Arrow, filled in one pass over the records of a window: all fields of
 * a record are read while the record is in the cache.
 */

#include "python_api.h"
#include "record.h"

enum { MOST_ENTRIES = 64 };

struct entry {
    struct span name, value;
};

struct entries {
    struct entry list[MOST_ENTRIES];
    size_t count;
};

/* Strings: the end of each, their bytes one after the other, and which records have one. */
struct texts {
    int32_t *ends;
    uint8_t *data, *are_there;
    size_t room, size;
};

/* Properties as a map: entries up to the end of each record, and the names and values of these. */
struct property_map {
    int32_t *row_ends;
    struct texts names, values;
    size_t room, count;
};

enum number { FLAG, RECONSUME_TIMES, BODY_CRC, PREPARED, BORN_TIMESTAMP, NUMBERS };
enum text { BODY, KEYS, TAGS, MESSAGE_ID, OFFSET_ID, BORN_HOST, STORE_HOST, TEXTS };

/* The columns that cannot be filled here. */
enum left { LEFT_ALL = 1, LEFT_MAP = 2, LEFT_BORN_HOST = 4, LEFT_STORE_HOST = 8 };

/* The memory of columns; NULL for columns that were not requested. */
struct columns {
    int64_t *numbers[NUMBERS];
    struct texts texts[TEXTS];
    struct property_map map;
};

static bool texts_add(struct texts *texts, size_t row, struct span text)
{
    if (text.size > texts->room - texts->size)
        return false;
    if (text.size)
        memcpy(texts->data + texts->size, text.at, text.size);
    texts->size += text.size;
    texts->ends[row] = (int32_t)texts->size;
    if (texts->are_there)
        texts->are_there[row] = text.size != 0;
    return true;
}

/* Removes an earlier entry with the same name. */
static void forget(struct entries *entries, struct span name)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (spans_are_equal(entries->list[i].name, name)) {
            entries->count--;
            memmove(&entries->list[i], &entries->list[i + 1], (entries->count - i) * sizeof entries->list[0]);
            return;
        }
    }
}

static bool take_apart(struct entries *entries, struct span properties)
{
    entries->count = 0;
    while (properties.size) {
        struct span value = span_take_piece(&properties, SEGLOG_ENTRY_END);
        struct span name = span_take_piece(&value, SEGLOG_NAME_END);
        if (name.size && value.size) {
            forget(entries, name);
            if (entries->count == MOST_ENTRIES)
                return false;
            struct entry entry = {name, value};
            entries->list[entries->count++] = entry;
        }
    }
    return true;
}

/* Adds the entries of a record; of several entries with one name the last one stays, in its place. Returns false
 * without room, or if a record has too many entries to compare with each other.
 */
static bool map_add(struct property_map *map, size_t row, struct span properties)
{
    struct entries entries;
    if (!take_apart(&entries, properties) || entries.count > map->room - map->count)
        return false;
    for (size_t i = 0; i < entries.count; i++, map->count++)
        if (!texts_add(&map->names, map->count, entries.list[i].name) ||
            !texts_add(&map->values, map->count, entries.list[i].value))
            return false;
    map->row_ends[row] = (int32_t)map->count;
    return true;
}

static uint8_t *write_decimal(uint8_t *at, int64_t value)
{
    uint8_t digits[20];
    size_t count = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[count++] = (uint8_t)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *at++ = '-';
    while (count)
        *at++ = digits[--count];
    return at;
}

/* Adds the text of an IPv4 address and its port, as they are in a record. */
static bool host_add(struct texts *texts, size_t row, const uint8_t *host)
{
    uint8_t text[32], *at = text; /* 255.255.255.255:-2147483648 */
    for (size_t i = 0; i < SEGLOG_IPV4_BYTES; i++) {
        at = write_decimal(at, host[i]);
        *at++ = i + 1 < SEGLOG_IPV4_BYTES ? '.' : ':';
    }
    at = write_decimal(at, read_i32(host + SEGLOG_IPV4_BYTES));
    return texts_add(texts, row, span_of(text, (size_t)(at - text)));
}

static uint8_t *write_hexadecimal(uint8_t *at, struct span bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t byte = bytes.at[i];
        *at++ = (uint8_t)digits[byte >> 4];
        *at++ = (uint8_t)digits[byte & 15];
    }
    return at;
}

/* Adds the store host and the physical offset of a record in hexadecimal: its offsetMsgId. */
static bool offset_id_add(struct texts *texts, size_t row, struct span host, const uint8_t *phy_offset)
{
    uint8_t text[2 * (SEGLOG_IPV6_BYTES + sizeof(int32_t) + sizeof(int64_t))];
    uint8_t *at = write_hexadecimal(text, host);
    at = write_hexadecimal(at, span_of(phy_offset, sizeof(int64_t)));
    return texts_add(texts, row, span_of(text, (size_t)(at - text)));
}

/* Returns the size of the store host with its port. */
static size_t store_host_size(int32_t sys_flag)
{
    return (sys_flag & SEGLOG_STORE_HOST_V6 ? SEGLOG_IPV6_BYTES : SEGLOG_IPV4_BYTES) + sizeof(int32_t);
}

static void numbers_set(int64_t *const *numbers, size_t row, const struct record *record)
{
    const uint8_t *at = record->bytes.at;
    /* The fields behind the hosts have a fixed distance to the end of the head, with addresses of any length. */
    const uint8_t *behind = record->body.at - SEGLOG_HEADS_0_SIZE;
    if (numbers[FLAG])
        numbers[FLAG][row] = read_i32(at + SEGLOG_HEADS_0_FLAG_AT);
    if (numbers[BODY_CRC])
        numbers[BODY_CRC][row] = record->body_crc;
    if (numbers[BORN_TIMESTAMP])
        numbers[BORN_TIMESTAMP][row] = read_i64(at + SEGLOG_HEADS_0_BORN_TIMESTAMP_MS_AT);
    if (numbers[RECONSUME_TIMES])
        numbers[RECONSUME_TIMES][row] = read_i32(behind + SEGLOG_HEADS_0_RECONSUME_TIMES_AT);
    if (numbers[PREPARED])
        numbers[PREPARED][row] = read_i64(behind + SEGLOG_HEADS_0_PREPARED_TRANSACTION_OFFSET_AT);
}

/* Fills the columns of strings of a record; returns those that cannot be filled. */
static int texts_fill(struct texts *texts, size_t row, const struct record *record)
{
    struct index_values values = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const uint8_t *born = record->bytes.at + SEGLOG_HEADS_0_BORN_ADDRESS_AT;
    size_t store_at = record_store_timestamp_at(record->sys_flag) + sizeof(int64_t);
    struct span store = span_of(record->bytes.at + store_at, store_host_size(record->sys_flag));
    const uint8_t *place = record->bytes.at + SEGLOG_HEADS_0_PHY_OFFSET_AT;
    int left = 0;
    if (texts[KEYS].ends || texts[TAGS].ends || texts[MESSAGE_ID].ends)
        values = index_values_of(record->properties);
    if ((texts[BODY].ends && !texts_add(&texts[BODY], row, record->body)) ||
        (texts[KEYS].ends && !texts_add(&texts[KEYS], row, values.keys)) ||
        (texts[TAGS].ends && !texts_add(&texts[TAGS], row, values.tags)) ||
        (texts[OFFSET_ID].ends && !offset_id_add(&texts[OFFSET_ID], row, store, place)))
        return LEFT_ALL;
    if (texts[MESSAGE_ID].ends && !(values.unique_key.size
                                        ? texts_add(&texts[MESSAGE_ID], row, values.unique_key)
                                        : offset_id_add(&texts[MESSAGE_ID], row, store, place)))
        return LEFT_ALL;
    if (texts[BORN_HOST].ends &&
        (record->sys_flag & SEGLOG_BORN_HOST_V6 || !host_add(&texts[BORN_HOST], row, born)))
        left |= LEFT_BORN_HOST;
    if (texts[STORE_HOST].ends &&
        (record->sys_flag & SEGLOG_STORE_HOST_V6 || !host_add(&texts[STORE_HOST], row, store.at)))
        left |= LEFT_STORE_HOST;
    return left;
}

struct columns_job {
    struct span log;
    int64_t phy_offset;
    const uint8_t *rows;
    size_t count;
    struct columns columns;
    int left;
};

static void columns_job(void *state)
{
    struct columns_job *job = state;
    struct columns *columns = &job->columns;
    for (size_t row = 0; row < job->count; row++) {
        struct record record;
        uint64_t position = (uint64_t)row_i64(job->rows + row * SEGLOG_ROW_SIZE + SEGLOG_ROW_PHY_OFFSET_AT) -
                            (uint64_t)job->phy_offset;
        if (!record_read_at(job->log, position, job->phy_offset, &record)) {
            job->left = LEFT_ALL;
            return;
        }
        numbers_set(columns->numbers, row, &record);
        job->left |= texts_fill(columns->texts, row, &record);
        if (columns->map.row_ends && !(job->left & LEFT_MAP) &&
            !map_add(&columns->map, row, record.properties))
            job->left |= LEFT_MAP;
        if (job->left & LEFT_ALL)
            return;
    }
}

/* The buffers of the columns that Python gave; released at the end. */
struct memory {
    Py_buffer views[NUMBERS + 3 * TEXTS + 5];
    size_t count;
};

/* Takes a buffer from a tuple; returns NULL for a column that was not requested, and after an exception. */
static void *take_memory(struct memory *memory, PyObject *given, Py_ssize_t at, size_t least, size_t *size)
{
    PyObject *one = PyErr_Occurred() ? NULL : PyTuple_GetItem(given, at);
    Py_buffer *view = &memory->views[memory->count];
    if (!one || one == Py_None || PyObject_GetBuffer(one, view, PyBUF_WRITABLE) < 0)
        return NULL;
    memory->count++;
    if ((size_t)view->len < least || view->len > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the columns have no room for the messages");
        return NULL;
    }
    if (size)
        *size = (size_t)view->len;
    return view->buf;
}

static bool take_texts(struct texts *texts, struct memory *memory, PyObject *given, Py_ssize_t at,
                       size_t count)
{
    texts->ends = take_memory(memory, given, at, count * sizeof(int32_t), NULL);
    texts->data = take_memory(memory, given, at + 1, 0, &texts->room);
    texts->are_there = take_memory(memory, given, at + 2, count, NULL);
    return !PyErr_Occurred();
}

static bool take_map(struct property_map *map, struct memory *memory, PyObject *given, Py_ssize_t at,
                     size_t count)
{
    size_t names = 0, values = 0;
    map->row_ends = take_memory(memory, given, at, count * sizeof(int32_t), NULL);
    map->names.ends = take_memory(memory, given, at + 1, 0, &names);
    map->names.data = take_memory(memory, given, at + 2, 0, &map->names.room);
    map->values.ends = take_memory(memory, given, at + 3, 0, &values);
    map->values.data = take_memory(memory, given, at + 4, 0, &map->values.room);
    map->room = (names < values ? names : values) / sizeof(int32_t);
    return !PyErr_Occurred();
}

static bool take_columns(struct columns *columns, struct memory *memory, PyObject *given, size_t count)
{
    for (Py_ssize_t i = 0; i < NUMBERS; i++)
        columns->numbers[i] = take_memory(memory, given, i, count * sizeof(int64_t), NULL);
    for (Py_ssize_t i = 0; i < TEXTS; i++)
        if (!take_texts(&columns->texts[i], memory, given, NUMBERS + 3 * i, count))
            return false;
    return take_map(&columns->map, memory, given, NUMBERS + 3 * TEXTS, count);
}

PyObject *py_message_columns(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { VIEW, ROWS, BUFFERS };
    Py_buffer in[BUFFERS];
    long long phy_offset;
    PyObject *given, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*LO!", &in[VIEW], &in[ROWS], &phy_offset, &PyTuple_Type, &given))
        return NULL;
    struct memory memory = {.count = 0};
    struct columns_job job = {
        .log = span_in(&in[VIEW]),
        .phy_offset = phy_offset,
        .rows = in[ROWS].buf,
        .count = (size_t)in[ROWS].len / SEGLOG_ROW_SIZE,
    };
    if (phy_offset < 0 || PyTuple_Size(given) != NUMBERS + 3 * TEXTS + 5)
        PyErr_SetString(PyExc_ValueError, "there is memory, or None, for each column");
    else if (take_columns(&job.columns, &memory, given, job.count) &&
             call_guarded(&in[VIEW], columns_job, &job))
        result = Py_BuildValue("in", job.left, (Py_ssize_t)job.columns.map.count);
    buffers_release(memory.views, memory.count);
    buffers_release(in, BUFFERS);
    return result;
}
