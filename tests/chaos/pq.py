"""The few functions of libpq that the driver needs, without packages that Python would have to get."""
import ctypes
import ctypes.util
import select
import time

_lib = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")


class _Notify(ctypes.Structure):
    _fields_ = [("channel", ctypes.c_char_p), ("pid", ctypes.c_int), ("payload", ctypes.c_char_p)]


def _declare(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


_pointer, _text, _int = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_connect = _declare("PQconnectdb", _pointer, _text)
_status = _declare("PQstatus", _int, _pointer)
_error = _declare("PQerrorMessage", _text, _pointer)
_finish = _declare("PQfinish", None, _pointer)
_exec = _declare("PQexec", _pointer, _pointer, _text)
_result_status = _declare("PQresultStatus", _int, _pointer)
_result_field = _declare("PQresultErrorField", _text, _pointer, _int)
_rows = _declare("PQntuples", _int, _pointer)
_columns = _declare("PQnfields", _int, _pointer)
_is_null = _declare("PQgetisnull", _int, _pointer, _int, _int)
_value = _declare("PQgetvalue", _text, _pointer, _int, _int)
_clear = _declare("PQclear", None, _pointer)
_socket = _declare("PQsocket", _int, _pointer)
_consume = _declare("PQconsumeInput", _int, _pointer)
_notifies = _declare("PQnotifies", ctypes.POINTER(_Notify), _pointer)
_free = _declare("PQfreemem", None, _pointer)
_processor = _declare("PQsetNoticeProcessor", _pointer, _pointer, _pointer, _pointer)
_quiet = ctypes.CFUNCTYPE(None, _pointer, _text)(lambda _, __: None)

_OK, _COMMAND_OK, _TUPLES_OK, _SQLSTATE = 0, 1, 2, ord("C")


class Lost(Exception):
    """The database cannot be reached, or was lost before its answer came: what was asked may have been done."""


class Refused(Exception):
    """The database answered with an error; what was asked is not done."""

    def __init__(self, message, sqlstate):
        super().__init__(f"{message.strip()} (SQLSTATE {sqlstate})")
        self.sqlstate = sqlstate


def literal(value):
    if value is None:
        return "null"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


class Connection:
    """One connection; used by one thread. Everything is text, None for null."""

    def __init__(self, conninfo):
        self._c = _connect(conninfo.encode())
        if _status(self._c) != _OK:
            reason = _error(self._c).decode(errors="replace").strip()
            self.close()
            raise Lost(reason)
        _processor(self._c, ctypes.cast(_quiet, _pointer), None)

    def close(self):
        if self._c:
            _finish(self._c)
            self._c = None

    def query(self, sql):
        result = _exec(self._c, sql.encode())
        try:
            if _result_status(result) in (_COMMAND_OK, _TUPLES_OK):
                return [tuple(None if _is_null(result, i, j) else _value(result, i, j).decode() for j in range(_columns(result)))
                        for i in range(_rows(result))]
            state = _result_field(result, _SQLSTATE) if result else None
            if state is None or _status(self._c) != _OK or state[:2] in (b"57", b"08"):
                raise Lost(_error(self._c).decode(errors="replace").strip())
            raise Refused(_error(self._c).decode(errors="replace"), state.decode())
        finally:
            _clear(result)

    def notifications(self, seconds):
        """Those that have come, at the latest after so long: (channel, payload)."""
        until = time.monotonic() + seconds
        while True:
            found = []
            while note := _notifies(self._c):
                found.append((note.contents.channel.decode(), note.contents.payload.decode()))
                _free(note)
            left = until - time.monotonic()
            if found or left <= 0:
                return found
            select.select([_socket(self._c)], [], [], left)
            if not _consume(self._c):
                raise Lost(_error(self._c).decode(errors="replace").strip())


class Session:
    """A connection that is made when it is needed, and again after it was lost."""

    def __init__(self, conninfo):
        self.conninfo, self._connection = conninfo, None

    def connection(self):
        if self._connection is None:
            self._connection = Connection(self.conninfo)
        return self._connection

    def query(self, sql):
        try:
            return self.connection().query(sql)
        except Lost:
            self.close()
            raise

    def one(self, sql):
        rows = self.query(sql)
        return rows[0][0] if rows else None

    def patiently(self, sql, seconds):
        """Again and again until there is an answer; for what may be done twice."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.query(sql)
            except (Lost, Refused) as error:
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def close(self):
        if self._connection:
            self._connection.close()
            self._connection = None
