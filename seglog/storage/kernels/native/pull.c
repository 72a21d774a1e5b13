#include "pull.h"

#include "../layout.h"
#include "record.h"

enum { FIRST_RUNS = 4 };

/* One unit. */
struct unit {
    int64_t phy_offset, tags_code;
    int32_t size_bytes;
};

/* The file of the log that the last record was in, and where the last run ends. */
struct cursor {
    const struct file_map *file;
    int64_t first, end, run_end;
    size_t run_room;
};

static struct unit unit_at(const uint8_t *at)
{
    return (struct unit){
        .phy_offset = read_i64(at + SEGLOG_CQ_UNIT_PHY_OFFSET_AT),
        .tags_code = read_i64(at + SEGLOG_CQ_UNIT_TAGS_CODE_AT),
        .size_bytes = read_i32(at + SEGLOG_CQ_UNIT_SIZE_BYTES_AT),
    };
}

static bool leads_to_record(const struct unit *unit, const struct pull_question *question)
{
    return unit->phy_offset >= 0 && unit->size_bytes >= SEGLOG_MIN_RECORD_BYTES &&
           unit->size_bytes != SEGLOG_PRE_BLANK_BYTES &&
           unit->phy_offset <= question->end_phy_offset - unit->size_bytes;
}

/* Goes to the file of a record. */
static enum pull_end go_to(struct cursor *cursor, const Maps *log, int64_t phy_offset, int64_t now_ms,
                           struct pull *pull)
{
    if (phy_offset >= cursor->first && phy_offset < cursor->end)
        return PULL_DONE;
    struct file_map *file = maps_find(log, phy_offset);
    if (!file)
        return PULL_UNUSUAL;
    if (file->checked_ms != now_ms) {
        pull->unchecked = file;
        return PULL_UNCHECKED;
    }
    cursor->file = file;
    cursor->first = phy_offset - phy_offset % log->file_bytes;
    cursor->end = cursor->first + log->file_bytes;
    return PULL_DONE;
}

/* Whether a record may be a tombstone. Its head is looked at only where nothing else tells: the memory of
 * a record that nobody has read yet is slow to come by. A code that is no hash of a tag was set by a broker.
 */
static bool may_be_lost(const struct pull_question *question, size_t i, const struct unit *unit,
                        const uint8_t *record)
{
    bool is_open = unit->tags_code == 0 || unit->tags_code == SEGLOG_LOST_TAGS_CODE ||
                   unit->tags_code != (int32_t)unit->tags_code;
    bool is_living = (int64_t)i >= question->living_from && (int64_t)i < question->living_to;
    return is_open && !is_living && read_i32(record + SEGLOG_HEADS_0_FLAG_AT) == SEGLOG_LOST_FLAG;
}

/* Compares the tag; whether the record can be read is *is_readable. */
static bool is_wanted(const TagSet *wanted, const struct unit *unit, const uint8_t *bytes, bool *is_readable)
{
    struct record record;
    *is_readable = true;
    if (!wanted || tag_set_is_loose(wanted))
        return true;
    int64_t own_offset = read_i64(bytes + SEGLOG_HEADS_0_PHY_OFFSET_AT);
    *is_readable = record_read(span_of(bytes, (size_t)unit->size_bytes), own_offset, &record);
    return *is_readable && tag_set_has_tag(wanted, record.properties);
}

static bool has_run_room(struct cursor *cursor, struct found_records *records)
{
    if (records->run_count < cursor->run_room)
        return true;
    size_t room = cursor->run_room ? 2 * cursor->run_room : FIRST_RUNS;
    struct found_run *runs = PyMem_Realloc(records->runs, room * sizeof *runs);
    if (!runs)
        return false;
    records->runs = runs;
    cursor->run_room = room;
    return true;
}

static bool take_record(struct cursor *cursor, struct found_records *records, const struct unit *unit)
{
    int64_t position = unit->phy_offset - cursor->first;
    records->sizes[records->count++] = unit->size_bytes;
    if (unit->phy_offset == cursor->run_end && position > 0) {
        records->runs[records->run_count - 1].size_bytes += unit->size_bytes;
    } else {
        if (!has_run_room(cursor, records))
            return false;
        records->runs[records->run_count++] =
            (struct found_run){Py_NewRef(cursor->file->view), position, unit->size_bytes};
    }
    cursor->run_end = unit->phy_offset + unit->size_bytes;
    return true;
}

static enum pull_end walk_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                                struct pull *pull)
{
    struct cursor cursor = {.run_end = -1};
    const TagSet *wanted = question->wanted;
    int64_t held_bytes = 0;
    size_t i;
    for (i = 0; i < question->unit_count; i++) {
        struct unit unit = unit_at(question->units + i * SEGLOG_CQ_UNIT_SIZE);
        if (!leads_to_record(&unit, question))
            return PULL_UNUSUAL;
        if (wanted && (unit.tags_code == SEGLOG_LOST_TAGS_CODE || unit.tags_code <= SEGLOG_MAX_EXT_ADDRESS))
            return PULL_UNUSUAL;
        if (wanted && !tag_set_has_code(wanted, unit.tags_code))
            continue;
        if (pull->records.count && (pull->records.count >= question->max_count ||
                                    unit.size_bytes > question->max_bytes - held_bytes))
            break;
        enum pull_end end = go_to(&cursor, log, unit.phy_offset, now_ms, pull);
        if (end != PULL_DONE)
            return end;
        int64_t record_end = unit.phy_offset + unit.size_bytes;
        if (record_end > cursor.end || !maps_are_sound(log, cursor.file, unit.phy_offset, record_end))
            return PULL_UNUSUAL;
        const uint8_t *record = cursor.file->memory + (unit.phy_offset - cursor.first);
        bool is_readable = true;
        if (may_be_lost(question, i, &unit, record))
            return PULL_UNUSUAL;
        if (!is_wanted(wanted, &unit, record, &is_readable)) {
            if (!is_readable)
                return PULL_UNUSUAL;
            continue;
        }
        if (!take_record(&cursor, &pull->records, &unit))
            return PULL_NO_MEMORY;
        held_bytes += unit.size_bytes;
    }
    pull->examined = i;
    return PULL_DONE;
}

enum pull_end pull_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                         struct pull *pull)
{
    size_t most = question->max_count < question->unit_count ? question->max_count : question->unit_count;
    *pull = (struct pull){0};
    pull->records.sizes = PyMem_Malloc(most * sizeof *pull->records.sizes);
    enum pull_end end = pull->records.sizes ? walk_units(question, log, now_ms, pull) : PULL_NO_MEMORY;
    if (end != PULL_DONE)
        found_free(&pull->records);
    return end;
}

int64_t plain_record_bytes(const Maps *log, const struct file_map *file, int64_t phy_offset,
                           int64_t end_phy_offset)
{
    int64_t position = phy_offset % log->file_bytes;
    int64_t end = phy_offset - position + log->file_bytes;
    if (end > end_phy_offset)
        end = end_phy_offset;
    if (end - phy_offset < SEGLOG_MIN_RECORD_BYTES ||
        !maps_are_sound(log, file, phy_offset, phy_offset + SEGLOG_MIN_RECORD_BYTES))
        return 0;
    const uint8_t *record = file->memory + position;
    int32_t size = read_i32(record + SEGLOG_HEADS_0_SIZE_BYTES_AT);
    uint32_t magic = read_u32(record + SEGLOG_HEADS_0_MAGIC_AT);
    bool is_record = (magic == SEGLOG_MAGIC_V1 || magic == SEGLOG_MAGIC_V2) && size >= SEGLOG_MIN_RECORD_BYTES &&
                     size <= end - phy_offset && maps_are_sound(log, file, phy_offset, phy_offset + size) &&
                     read_i32(record + SEGLOG_HEADS_0_FLAG_AT) != SEGLOG_LOST_FLAG;
    return is_record ? size : 0;
}
