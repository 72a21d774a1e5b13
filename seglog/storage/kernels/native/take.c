#include "take.h"

#include <string.h>

static PyObject *address_name, *port_name;

bool take_prepare(void)
{
    address_name = PyUnicode_InternFromString("address");
    port_name = PyUnicode_InternFromString("port");
    return address_name && port_name;
}

bool take_bytes(PyObject *value, struct span *bytes)
{
    char *at;
    Py_ssize_t size;
    if (!PyBytes_Check(value) || PyBytes_AsStringAndSize(value, &at, &size) < 0)
        return false;
    *bytes = span_of((const uint8_t *)at, (size_t)size);
    return true;
}

bool take_text(PyObject *value, struct span *text)
{
    Py_ssize_t size;
    const char *at = PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (!at)
        return false;
    *text = span_of((const uint8_t *)at, (size_t)size);
    return true;
}

bool take_i64(PyObject *value, int64_t *number)
{
    int overflow;
    if (!PyLong_CheckExact(value)) /* a bool is no number, and the twin says so */
        return false;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

bool take_i32(PyObject *value, int32_t *number)
{
    int64_t wide;
    if (!take_i64(value, &wide) || wide < INT32_MIN || wide > INT32_MAX)
        return false;
    *number = (int32_t)wide;
    return true;
}

static bool take_address(PyObject *value, struct host *host)
{
    struct span address;
    if (!take_bytes(value, &address) || address.size > sizeof host->address)
        return false;
    host->address_size = address.size;
    memcpy(host->address, address.at, address.size);
    return true;
}

bool take_host(PyObject *value, struct host *host)
{
    PyObject *address = PyObject_GetAttr(value, address_name);
    PyObject *port = address ? PyObject_GetAttr(value, port_name) : NULL;
    bool is_taken = port && take_address(address, host) && take_i32(port, &host->port);
    Py_XDECREF(address);
    Py_XDECREF(port);
    return is_taken;
}
