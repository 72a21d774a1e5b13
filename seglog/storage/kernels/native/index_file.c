/* Files of the key index: writes entries, checks their chains, and compares them with the keys of records. */

#include <stdatomic.h>

#include "python_api.h"

/* The range of physical offsets of entries; is_sorted if they never descend. */
struct entries_extent {
    int64_t least, greatest;
    bool is_sorted;
};

/* An entry with a wrong predecessor, and its right one. */
struct wrong_entry {
    uint32_t number, previous;
};

/* The newest entries of the slots of a file, by slot, in the byte order of the machine; 0 for none. */
struct newest_entries {
    int32_t *slots;
    uint32_t slot_count;
};

struct index_file {
    uint8_t *bytes; /* a whole file, with a header */
    uint32_t slot_count, entry_count;
};

/* Returns the time of an entry: whole seconds after the begin time of its file, 0 if the file has none yet.
 * Wraps as arrays of integers do, so that the result is that of the Python twin.
 */
static uint32_t seconds_since(int64_t begin_ms, int64_t time_ms)
{
    if (begin_ms <= 0)
        return 0;
    int64_t seconds = (int64_t)((uint64_t)time_ms - (uint64_t)begin_ms) / 1000;
    return seconds < 0 ? 0 : seconds > SEGLOG_MAX_INT ? SEGLOG_MAX_INT : (uint32_t)seconds;
}

/* Returns the slot of a hash; fastest for hashes that are not negative, which all undamaged ones are. */
static uint32_t slot_of(int32_t hash, uint32_t slot_count)
{
    if (hash >= 0)
        return (uint32_t)hash % slot_count;
    int64_t slot = hash % (int64_t)slot_count;
    return (uint32_t)(slot < 0 ? slot + slot_count : slot);
}

enum { AHEAD = 24 /* entries whose slots are prefetched */ };

static const uint8_t *entry_at(const uint8_t *entries, size_t i)
{
    return entries + i * SEGLOG_INDEX_ENTRY_SIZE;
}

/* Returns the range of `count` entries, one or more. */
static struct entries_extent extent_of(const uint8_t *entries, size_t count)
{
    int64_t before = read_i64(entries + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT);
    struct entries_extent extent = {before, before, true};
    for (size_t i = 1; i < count; i++) {
        int64_t place = read_i64(entry_at(entries, i) + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT);
        extent.is_sorted &= place >= before;
        extent.least = place < extent.least ? place : extent.least;
        extent.greatest = place > extent.greatest ? place : extent.greatest;
        before = place;
    }
    return extent;
}

/* Follows the chains through `count` entries; the first one has the number `first`. Returns the number of
 * entries with a wrong predecessor; the first `most` of them are in `wrong`.
 */
static size_t entries_follow(const uint8_t *entries, size_t count, uint32_t first,
                             struct newest_entries newest, struct wrong_entry *wrong, size_t most)
{
    size_t found = 0;
    uint32_t slots[AHEAD];
    size_t fetched = 0;
    for (size_t i = 0; i < count; i++) {
        for (; fetched < count && fetched < i + AHEAD; fetched++) {
            const uint8_t *hash = entry_at(entries, fetched) + SEGLOG_INDEX_ENTRY_KEY_HASH_AT;
            slots[fetched % AHEAD] = slot_of(read_i32(hash), newest.slot_count);
            __builtin_prefetch(&newest.slots[slots[fetched % AHEAD]], 1);
        }
        int32_t *slot = &newest.slots[slots[i % AHEAD]];
        int32_t previous = *slot;
        *slot = (int32_t)(first + i);
        if (read_i32(entry_at(entries, i) + SEGLOG_INDEX_ENTRY_PREVIOUS_ENTRY_AT) != previous) {
            if (found < most) {
                struct wrong_entry one = {(uint32_t)(first + i), (uint32_t)previous};
                wrong[found] = one;
            }
            found++;
        }
    }
    return found;
}

static bool stands_for(const uint8_t *row, const uint8_t *entry)
{
    return read_i32(entry + SEGLOG_INDEX_ENTRY_KEY_HASH_AT) == row_i32(row + SEGLOG_KEY_ROW_KEY_HASH_AT) &&
           read_i64(entry + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT) == row_i64(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT);
}

/* Whether `count` entries are those of `count` keys in the same order, with the right times for the begin time
 * of their file. With a negative begin time, and for the file's first entry, times are not checked.
 */
static bool entries_stand_for(const uint8_t *rows, const uint8_t *entries, size_t count, int64_t begin_ms,
                              bool starts_file)
{
    /* Keys of one record, and often those of its neighbours, have the same time: it is converted once. */
    int64_t last_ms = 0;
    uint32_t seconds = seconds_since(begin_ms, last_ms);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = rows + i * SEGLOG_KEY_ROW_SIZE, *entry = entry_at(entries, i);
        if (!stands_for(row, entry))
            return false;
        if (begin_ms < 0 || (starts_file && i == 0))
            continue;
        int64_t time_ms = row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT);
        if (time_ms != last_ms) {
            seconds = seconds_since(begin_ms, time_ms);
            last_ms = time_ms;
        }
        if (read_u32(entry + SEGLOG_INDEX_ENTRY_TIME_DIFF_S_AT) != seconds)
            return false;
    }
    return true;
}

/* An entry is written before the slot that leads to it, and the header last, so that a concurrent reader sees
 * only whole chains.
 */

/* Writes one entry and the slot that leads to it; returns whether the slot was free. */
static int put_one(const struct index_file *file, const uint8_t *row, uint32_t number, int64_t begin_ms)
{
    int32_t hash = row_i32(row + SEGLOG_KEY_ROW_KEY_HASH_AT);
    uint8_t *slots = file->bytes + SEGLOG_INDEX_HEADER_SIZE;
    uint8_t *entries = slots + (size_t)file->slot_count * SEGLOG_INDEX_SLOT_SIZE;
    uint8_t *slot = slots + (size_t)slot_of(hash, file->slot_count) * SEGLOG_INDEX_SLOT_SIZE;
    uint8_t *entry = entries + (size_t)number * SEGLOG_INDEX_ENTRY_SIZE;
    uint32_t head = read_u32(slot + SEGLOG_INDEX_SLOT_NEWEST_ENTRY_AT);
    uint32_t previous = head <= number ? head : 0; /* a slot that leads to no older entry counts as empty */
    int64_t time_ms = row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT);
    write_u32(entry + SEGLOG_INDEX_ENTRY_KEY_HASH_AT, (uint32_t)hash);
    write_i64(entry + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT, row_i64(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT));
    write_u32(entry + SEGLOG_INDEX_ENTRY_TIME_DIFF_S_AT, seconds_since(begin_ms, time_ms));
    write_u32(entry + SEGLOG_INDEX_ENTRY_PREVIOUS_ENTRY_AT, previous);
    atomic_thread_fence(memory_order_release);
    write_u32(slot + SEGLOG_INDEX_SLOT_NEWEST_ENTRY_AT, number);
    return previous == 0;
}

static void put_header(uint8_t *header, const uint8_t *first, const uint8_t *last, uint32_t opened,
                       uint32_t end)
{
    atomic_thread_fence(memory_order_release);
    if (first) {
        write_i64(header + SEGLOG_INDEX_HEADER_BEGIN_TIMESTAMP_MS_AT,
                  row_i64(first + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT));
        write_i64(header + SEGLOG_INDEX_HEADER_BEGIN_PHY_OFFSET_AT,
                  row_i64(first + SEGLOG_KEY_ROW_PHY_OFFSET_AT));
    }
    write_i64(header + SEGLOG_INDEX_HEADER_END_TIMESTAMP_MS_AT,
              row_i64(last + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT));
    write_i64(header + SEGLOG_INDEX_HEADER_END_PHY_OFFSET_AT, row_i64(last + SEGLOG_KEY_ROW_PHY_OFFSET_AT));
    write_u32(header + SEGLOG_INDEX_HEADER_HASH_SLOT_COUNT_AT,
              read_u32(header + SEGLOG_INDEX_HEADER_HASH_SLOT_COUNT_AT) + opened);
    write_u32(header + SEGLOG_INDEX_HEADER_INDEX_COUNT_AT, end);
}

/* Writes as many of the rows as fit, in order, and returns their number. */
static uint32_t index_put(const struct index_file *file, const uint8_t *rows, uint32_t count)
{
    uint8_t *header = file->bytes;
    int32_t index_count = read_i32(header + SEGLOG_INDEX_HEADER_INDEX_COUNT_AT);
    uint32_t next = index_count > 0 ? (uint32_t)index_count : 1;
    int64_t begin_ms = read_i64(header + SEGLOG_INDEX_HEADER_BEGIN_TIMESTAMP_MS_AT);
    bool is_new = next == 1;
    uint32_t opened = 0;
    if (next >= file->entry_count || count == 0)
        return 0;
    if (count > file->entry_count - next)
        count = file->entry_count - next;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = rows + (size_t)i * SEGLOG_KEY_ROW_SIZE;
        opened += (uint32_t)put_one(file, row, next + i, begin_ms);
        if (is_new && i == 0) /* the time of the first entry is still relative to the end of the file before */
            begin_ms = row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT);
    }
    put_header(header, is_new ? rows : NULL, rows + (size_t)(count - 1) * SEGLOG_KEY_ROW_SIZE, opened,
               next + count);
    return count;
}

struct put_job {
    struct index_file file;
    const uint8_t *rows;
    uint32_t count, taken;
};

static void put_job(void *state)
{
    struct put_job *job = state;
    job->taken = index_put(&job->file, job->rows, job->count);
}

static bool fits(const Py_buffer *view, unsigned int slot_count, unsigned int entry_count)
{
    uint64_t size = SEGLOG_INDEX_HEADER_SIZE + (uint64_t)slot_count * SEGLOG_INDEX_SLOT_SIZE +
                    (uint64_t)entry_count * SEGLOG_INDEX_ENTRY_SIZE;
    return slot_count > 0 && entry_count <= SEGLOG_MAX_INT && (uint64_t)view->len >= size;
}

PyObject *py_put_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, rows;
    unsigned int slot_count, entry_count;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*IIy*", &view, &slot_count, &entry_count, &rows))
        return NULL;
    uint64_t count = (uint64_t)rows.len / SEGLOG_KEY_ROW_SIZE;
    if (!fits(&view, slot_count, entry_count)) {
        PyErr_SetString(PyExc_ValueError, "the file is shorter than its slots and entries");
    } else {
        struct put_job job = {
            .file = {view.buf, slot_count, entry_count},
            .rows = rows.buf,
            .count = count > SEGLOG_MAX_INT ? SEGLOG_MAX_INT : (uint32_t)count,
        };
        if (call_guarded(&view, put_job, &job))
            result = PyLong_FromUnsignedLong(job.taken);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&view);
    return result;
}

static size_t entry_count_of(const Py_buffer *entries)
{
    return (size_t)entries->len / SEGLOG_INDEX_ENTRY_SIZE;
}

PyObject *py_entries_extent(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer entries;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*", &entries))
        return NULL;
    if (entry_count_of(&entries)) {
        struct entries_extent extent;
        Py_BEGIN_ALLOW_THREADS
        extent = extent_of(entries.buf, entry_count_of(&entries));
        Py_END_ALLOW_THREADS
        PyObject *is_sorted = PyBool_FromLong(extent.is_sorted);
        result = Py_BuildValue("(LLN)", (long long)extent.least, (long long)extent.greatest, is_sorted);
    } else {
        PyErr_SetString(PyExc_ValueError, "no entries lead nowhere");
    }
    PyBuffer_Release(&entries);
    return result;
}

static PyObject *wrong_at(const void *wrong, size_t i)
{
    const struct wrong_entry *entry = (const struct wrong_entry *)wrong + i;
    return Py_BuildValue("(Ii)", entry->number, (int)entry->previous);
}

static PyObject *follow(const Py_buffer *entries, unsigned int first, const Py_buffer *newest,
                        unsigned int most)
{
    size_t slot_count = (size_t)newest->len / sizeof(int32_t);
    if (slot_count == 0 || slot_count > SEGLOG_MAX_INT ||
        entry_count_of(entries) > SEGLOG_MAX_INT - (size_t)first) {
        PyErr_SetString(PyExc_ValueError, "a file has slots, and its entries have numbers");
        return NULL;
    }
    struct wrong_entry *wrong = PyMem_Calloc(most ? most : 1, sizeof *wrong);
    if (!wrong)
        return PyErr_NoMemory();
    struct newest_entries chains = {newest->buf, (uint32_t)slot_count};
    size_t found;
    Py_BEGIN_ALLOW_THREADS
    found = entries_follow(entries->buf, entry_count_of(entries), first, chains, wrong, most);
    Py_END_ALLOW_THREADS
    PyObject *list = list_of(found < most ? found : most, wrong_at, wrong);
    PyMem_Free(wrong);
    return list;
}

PyObject *py_follow_entries(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer entries, newest;
    unsigned int first, most;
    if (!PyArg_ParseTuple(args, "y*Iw*I", &entries, &first, &newest, &most))
        return NULL;
    PyObject *result = NULL;
    if (first <= SEGLOG_MAX_INT)
        result = follow(&entries, first, &newest, most);
    else
        PyErr_SetString(PyExc_ValueError, "entries have numbers of 31 bits");
    PyBuffer_Release(&newest);
    PyBuffer_Release(&entries);
    return result;
}

PyObject *py_entries_stand_for(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer rows, entries;
    long long begin_ms;
    int starts_file;
    bool stand;
    if (!PyArg_ParseTuple(args, "y*y*Lp", &rows, &entries, &begin_ms, &starts_file))
        return NULL;
    size_t count = (size_t)rows.len / SEGLOG_KEY_ROW_SIZE;
    if (count != entry_count_of(&entries)) {
        stand = false;
    } else {
        Py_BEGIN_ALLOW_THREADS
        stand = entries_stand_for(rows.buf, entries.buf, count, begin_ms, starts_file);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&entries);
    PyBuffer_Release(&rows);
    return PyBool_FromLong(stand);
}
