/* Headers of frames in JSON, as seglog.remoting.frames does in Python, for usual headers.
 *
 * The result for all others is None. Python reads or writes those, and raises the errors, so that all rules
 * for headers are in one place.
 */

#include "python_api.h"

enum { MOST_DIGITS = 9, UNICODE_DIGITS = 4 };

/* A JSON text that is being read. */
struct reader {
    const uint8_t *at, *end;
};

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Skips blanks; returns the byte behind them, 0 at the end. */
static uint8_t peek(struct reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at))
        reader->at++;
    return reader->at < reader->end ? *reader->at : 0;
}

static bool take(struct reader *reader, uint8_t byte)
{
    if (peek(reader) != byte)
        return false;
    reader->at++;
    return true;
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Appends a character of the basic plane as UTF-8. */
static uint8_t *put_character(uint8_t *to, unsigned int code)
{
    if (code < 0x80) {
        *to++ = (uint8_t)code;
    } else if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6);
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    } else {
        *to++ = (uint8_t)(0xE0 | code >> 12);
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (code & 0x3F));
    }
    return to;
}

/* Reads the four digits of \uXXXX; returns -1 also for half a surrogate pair, which is left to Python. */
static int unicode_escape(const uint8_t *at, const uint8_t *end)
{
    int code = 0;
    if (end - at < UNICODE_DIGITS)
        return -1;
    for (int i = 0; i < UNICODE_DIGITS; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code >= 0xD800 && code < 0xE000 ? -1 : code;
}

/* Returns the text of a string with escapes, given the bytes between its quotes; NULL if it is not usual. */
static PyObject *unescaped(const uint8_t *at, const uint8_t *end)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* pairs: the escape, and its character */
    uint8_t *text = PyMem_Malloc((size_t)(end - at)), *to = text; /* no escape is shorter than its character */
    PyObject *found = NULL;
    if (!text)
        return NULL;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        at++; /* a backslash is never the last byte: a quote behind it does not end the string */
        if (*at == 'u') {
            int code = unicode_escape(at + 1, end);
            if (code < 0)
                goto end;
            to = put_character(to, (unsigned int)code);
            at += 1 + UNICODE_DIGITS;
            continue;
        }
        const char *escape = escapes;
        while (*escape && (uint8_t)*escape != *at)
            escape += 2;
        if (!*escape)
            goto end;
        *to++ = (uint8_t)escape[1];
        at++;
    }
    found = PyUnicode_DecodeUTF8((const char *)text, to - text, NULL);
end:
    PyMem_Free(text);
    return found;
}

/* Takes a string without its quotes, with its escapes; returns false if there is no string. */
static bool take_raw_string(struct reader *reader, struct span *raw, bool *is_escaped)
{
    if (!take(reader, '"'))
        return false;
    const uint8_t *start = reader->at;
    *is_escaped = false;
    for (; reader->at < reader->end; reader->at++) {
        if (*reader->at == '"') {
            *raw = span_of(start, (size_t)(reader->at++ - start));
            return true;
        }
        if (*reader->at == '\\') {
            *is_escaped = true;
            if (++reader->at == reader->end)
                return false;
        }
    }
    return false;
}

/* Takes a string; returns NULL, perhaps with an exception, if it is not usual. */
static PyObject *take_string(struct reader *reader)
{
    struct span raw;
    bool is_escaped;
    if (!take_raw_string(reader, &raw, &is_escaped))
        return NULL;
    return is_escaped ? unescaped(raw.at, raw.at + raw.size)
                      : PyUnicode_DecodeUTF8((const char *)raw.at, (Py_ssize_t)raw.size, NULL);
}

/* Takes a whole number of few digits. */
static bool take_number(struct reader *reader, long *number)
{
    bool is_negative = take(reader, '-');
    const uint8_t *first = reader->at;
    long found = 0;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' &&
           reader->at - first <= MOST_DIGITS)
        found = 10 * found + (*reader->at++ - '0');
    long digits = (long)(reader->at - first);
    *number = is_negative ? -found : found;
    return digits > 0 && digits <= MOST_DIGITS && (digits == 1 || *first != '0');
}

/* Takes the fields: texts by name, no name twice, at most `most`. */
static PyObject *take_fields(struct reader *reader, Py_ssize_t most)
{
    PyObject *fields = PyDict_New();
    if (!fields || !take(reader, '{'))
        goto unusual;
    if (take(reader, '}'))
        return fields;
    for (Py_ssize_t count = 1; count <= most; count++) {
        PyObject *name = take_string(reader);
        PyObject *value = name && take(reader, ':') ? take_string(reader) : NULL;
        bool is_put = value && PyDict_SetItem(fields, name, value) == 0 && PyDict_Size(fields) == count;
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (!is_put)
            goto unusual;
        if (take(reader, '}'))
            return fields;
        if (!take(reader, ','))
            goto unusual;
    }
unusual:
    Py_XDECREF(fields);
    return NULL;
}

/* The members of a header, in the order of the result; from LANGUAGE on they are texts or fields. */
enum member { CODE, VERSION, OPAQUE, FLAG, NUMBERS, LANGUAGE = NUMBERS, REMARK, FIELDS, FORM, MEMBERS };

struct header {
    long numbers[NUMBERS];
    PyObject *others[MEMBERS]; /* from LANGUAGE on */
    unsigned known;            /* bits of the members that were found */
};

static enum member member_of(struct span name)
{
    static const struct {
        const char *text;
        size_t size;
    } names[MEMBERS] = {
        [CODE] = {"code", 4},         [VERSION] = {"version", 7},   [OPAQUE] = {"opaque", 6},
        [FLAG] = {"flag", 4},         [LANGUAGE] = {"language", 8}, [REMARK] = {"remark", 6},
        [FIELDS] = {"extFields", 9}, [FORM] = {"serializeTypeCurrentRPC", 23},
    };
    int member = 0;
    while (member < MEMBERS && !spans_are_equal(name, span_of(names[member].text, names[member].size)))
        member++;
    return (enum member)member;
}

static bool take_member(struct reader *reader, struct header *header, Py_ssize_t most_fields)
{
    struct span name;
    bool is_escaped;
    if (!take_raw_string(reader, &name, &is_escaped) || !take(reader, ':'))
        return false;
    enum member member = member_of(name);
    if (member == MEMBERS || header->known & 1u << member)
        return false;
    header->known |= 1u << member;
    peek(reader);
    if (member < NUMBERS)
        return take_number(reader, &header->numbers[member]);
    header->others[member] = member == FIELDS ? take_fields(reader, most_fields) : take_string(reader);
    return header->others[member];
}

static bool take_header(struct reader *reader, struct header *header, Py_ssize_t most_fields)
{
    if (!take(reader, '{'))
        return false;
    do {
        if (!take_member(reader, header, most_fields))
            return false;
    } while (take(reader, ','));
    return take(reader, '}') && !peek(reader) && reader->at == reader->end;
}

static PyObject *or_none_of(PyObject *value)
{
    return value ? value : Py_None;
}

PyObject *py_read_header(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text;
    Py_ssize_t size, most_fields;
    if (!PyArg_ParseTuple(args, "y#n", &text, &size, &most_fields))
        return NULL;
    struct reader reader = {(const uint8_t *)text, (const uint8_t *)text + size};
    struct header header = {0};
    PyObject *found = NULL;
    if (take_header(&reader, &header, most_fields))
        found = Py_BuildValue("lOlllOO", header.numbers[CODE], or_none_of(header.others[LANGUAGE]),
                              header.numbers[VERSION], header.numbers[OPAQUE], header.numbers[FLAG],
                              or_none_of(header.others[REMARK]), or_none_of(header.others[FIELDS]));
    for (int i = NUMBERS; i < MEMBERS; i++)
        Py_XDECREF(header.others[i]);
    if (found)
        return found;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* A text that is being written; with `at` NULL nothing is written, and `size` counts the bytes. */
struct writer {
    uint8_t *at;
    size_t size;
};

static void put(struct writer *writer, struct span bytes)
{
    if (writer->at)
        memcpy(writer->at + writer->size, bytes.at, bytes.size);
    writer->size += bytes.size;
}

static void put_byte(struct writer *writer, uint8_t byte)
{
    put(writer, span_of(&byte, 1));
}

static void put_escape(struct writer *writer, uint8_t byte)
{
    static const char *const hex = "0123456789abcdef", *const named = "\"\"\\\\\bb\ff\nn\rr\tt";
    const char *escape = named;
    while (*escape && (uint8_t)*escape != byte)
        escape += 2;
    put_byte(writer, '\\');
    if (*escape) {
        put_byte(writer, (uint8_t)escape[1]);
        return;
    }
    put(writer, TEXT("u00"));
    put_byte(writer, (uint8_t)hex[byte >> 4]);
    put_byte(writer, (uint8_t)hex[byte & 0xF]);
}

static bool put_string(struct writer *writer, PyObject *value)
{
    struct span text;
    if (!py_to_text(value, &text))
        return false;
    put_byte(writer, '"');
    size_t from = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] >= ' ' && text.at[i] != '"' && text.at[i] != '\\')
            continue;
        put(writer, span_of(text.at + from, i - from));
        put_escape(writer, text.at[i]);
        from = i + 1;
    }
    put(writer, span_after(text, from));
    put_byte(writer, '"');
    return true;
}

static bool put_number(struct writer *writer, PyObject *value)
{
    int64_t number;
    if (!py_to_i64(value, &number))
        return false;
    uint8_t digits[24], *first = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--first = (uint8_t)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (number < 0)
        *--first = '-';
    put(writer, span_of(first, (size_t)(digits + sizeof digits - first)));
    return true;
}

static bool put_fields(struct writer *writer, PyObject *fields)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    uint8_t before = '{';
    if (!PyDict_CheckExact(fields))
        return false;
    while (PyDict_Next(fields, &at, &name, &value)) {
        put_byte(writer, before);
        before = ',';
        if (!put_string(writer, name))
            return false;
        put_byte(writer, ':');
        if (!put_string(writer, value))
            return false;
    }
    if (before == '{')
        put_byte(writer, '{');
    put_byte(writer, '}');
    return true;
}

/* The values of a header to write. */
struct written {
    PyObject *code, *fields, *flag, *language, *opaque, *remark, *form, *version;
};

static bool put_header(struct writer *writer, const struct written *of)
{
    put(writer, TEXT("{\"code\":"));
    if (!put_number(writer, of->code))
        return false;
    if (of->fields != Py_None) {
        put(writer, TEXT(",\"extFields\":"));
        if (!put_fields(writer, of->fields))
            return false;
    }
    put(writer, TEXT(",\"flag\":"));
    if (!put_number(writer, of->flag))
        return false;
    put(writer, TEXT(",\"language\":"));
    if (!put_string(writer, of->language))
        return false;
    put(writer, TEXT(",\"opaque\":"));
    if (!put_number(writer, of->opaque))
        return false;
    if (of->remark != Py_None) {
        put(writer, TEXT(",\"remark\":"));
        if (!put_string(writer, of->remark))
            return false;
    }
    put(writer, TEXT(",\"serializeTypeCurrentRPC\":"));
    if (!put_string(writer, of->form))
        return false;
    put(writer, TEXT(",\"version\":"));
    if (!put_number(writer, of->version))
        return false;
    put_byte(writer, '}');
    return true;
}

PyObject *py_write_header(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct written of;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &of.code, &of.fields, &of.flag, &of.language, &of.opaque,
                          &of.remark, &of.form, &of.version))
        return NULL;
    struct writer writer = {NULL, 0};
    if (!put_header(&writer, &of)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *header = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)writer.size);
    if (header) {
        writer = (struct writer){(uint8_t *)PyBytes_AsString(header), 0};
        put_header(&writer, &of); /* the same size as before: no Python code ran that could change the values
        */
    }
    return header;
}
