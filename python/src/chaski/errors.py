"""The exceptions of chaski. All are `Error`; those about an input carry its place.

Wrong arguments are a `SpecError` everywhere, what cannot be opened or read an `Error` of the kind
that fits, and an engine that does not run an `EngineError`: functions document what else they
raise.
"""

from __future__ import annotations

from typing import ClassVar

from chaski._records import SampleRef
from chaski._secrets import without_secrets

__all__ = [
    "AccessError",
    "CorruptError",
    "DeadlineError",
    "EngineError",
    "Error",
    "LimitError",
    "MisplacedError",
    "NotFoundError",
    "PayloadError",
    "SpecError",
    "StateError",
    "UnavailableError",
    "UnsupportedError",
]


_DOCS = "https://github.com/chaski-eo/chaski/blob/main/docs/"
# Pages about errors, by kind and part; "" stands for every part.
_PAGES = {
    ("misplaced", ""): "fields.md#the-ground",
    ("unsupported", "bands"): "fields.md#bands-by-name",
    ("not found", "bands"): "fields.md#bands-by-name",
    ("unsupported", "pixels"): "fields.md#values",
    ("unsupported", "CRS"): "scenes.md",
    ("limit", "batch"): "operations.md#memory",
    ("corrupt", ""): "sampling.md#bad-samples",
    ("state", ""): "resume.md",
    ("access", ""): "operations.md#who-may-connect",
    ("unavailable", ""): "operations.md#errors",
}


class Error(Exception):
    """What goes wrong in chaski.

    Attributes:
        kind: "corrupt", "unsupported", "limit", "not found", "misplaced", "unavailable",
            "access", "deadline", "state", "payload", "spec", or of a server "internal"; "" where
            nothing of that is at fault.
        file: path or URI of the input, or "".
        part: the place as the format calls it ("ifd 0 tag 324", "tile 18"), or "".
        offset: byte offset in the file, or -1.
        sample: the sample that could not be read (its index, the row of the table and what that is
            called), or None where it is not about one.
        source: of a mixture, the name of the sample's source, or "".
        page: the address of the page of the documentation about such errors, or "". Python 3.11
            shows it below the message.
    """

    kind = ""
    _of_kind: ClassVar[dict[str, type[Error]]] = {}

    def __init_subclass__(cls, kind: str = "") -> None:
        """Makes a class that of the errors of a kind."""
        if kind:
            cls.kind = kind
            Error._of_kind[kind] = cls

    def __init__(
        self, message: str, *, kind: str = "", file: str = "", part: str = "", offset: int = -1
    ) -> None:
        super().__init__(without_secrets(message))
        self.kind = kind or self.kind
        self.file = without_secrets(file)
        self.part = part
        self.offset = offset
        self.sample: SampleRef | None = None
        self.source = ""
        self._cause = ""  # the message without the words that say which sample it is about
        self._answered = False  # an engine that lives has said it, so it is not about its end
        page = _PAGES.get((self.kind, part)) or _PAGES.get((self.kind, ""), "")
        self.page = _DOCS + page if page else ""
        if page and hasattr(self, "add_note"):  # Python 3.11
            self.add_note(f"See {self.page}")


class CorruptError(Error, kind="corrupt"):
    """The bytes of an input contradict their format, or end early."""


class UnsupportedError(Error, kind="unsupported"):
    """The input may be valid, but chaski does not read this."""


class LimitError(Error, kind="limit"):
    """Reading would pass a bound on memory, size or count."""


class NotFoundError(Error, FileNotFoundError, kind="not found"):
    """A named thing (file, sample, column, band) does not exist."""


class MisplacedError(Error, kind="misplaced"):
    """The rasters of one sample lie at different places on the ground."""


class SpecError(Error, ValueError, kind="spec"):
    """The arguments do not describe batches; the message names the one that is wrong."""


class StateError(Error, ValueError, kind="state"):
    """A state cannot be resumed here; the message says what differs."""


class PayloadError(Error, kind="payload"):
    """A server sent a message that breaks the format of batches."""


class EngineError(Error):
    """The local engine was not found, did not start, or died."""


class UnavailableError(Error, ConnectionError, kind="unavailable"):
    """The server cannot be reached, or no server gave anything for `patience`.

    Of files on another machine: it did not answer, or refused.
    """


class AccessError(Error, PermissionError, kind="access"):
    """The server lets only known clients in; the message says what is missing or wrong."""


class DeadlineError(Error, TimeoutError, kind="deadline"):
    """Nothing arrived from the server within `timeout`."""


# The kinds of what is wrong with a file, which a policy for bad samples covers.
OF_FILES = ("corrupt", "unsupported", "limit", "not found", "misplaced")
