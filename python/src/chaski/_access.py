"""What a client shows a server: tokens and certificates."""

from __future__ import annotations

import ipaddress
import os
import pathlib
from typing import TYPE_CHECKING, Any

from chaski._argument import Argument
from chaski._files import absolute_path
from chaski.errors import SpecError

if TYPE_CHECKING:
    import grpc

TOKEN, TOKEN_FILE = "CHASKI_TOKEN", "CHASKI_TOKEN_FILE"
"""Environment variables of the token, and of a file that has it."""


class Token:
    """The token that a server knows a client by: see `chaski token`.

    It prints as "Token(...)" and refuses to be pickled, so that it does not get into logs and
    checkpoints. What runs in several processes names a file (`Token.file`) or an environment
    variable.
    """

    __slots__ = ("_path", "_text")  # no dataclass: dataclasses.asdict(engine) would show the text

    def __init__(self, text: str) -> None:
        """Takes a token; the error about a wrong one does not show it."""
        self._path = ""
        self._text = _checked(text)

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> Token:
        """Returns the token in a file, which is read again with every call."""
        token = cls.__new__(cls)
        token._text, token._path = "", absolute_path(os.fspath(path))
        token.text()
        return token

    def text(self) -> str:
        """Returns the token itself."""
        if not self._path:
            return self._text
        try:
            with open(self._path, encoding="ascii", errors="replace") as f:
                return _checked(f.read(1 << 16))
        except OSError as e:
            raise SpecError(f"the token cannot be read: {e}") from None

    @property
    def path(self) -> str:
        """The file of the token, or "" if it was given itself."""
        return self._path

    def __repr__(self) -> str:
        """Returns where the token is, not the token."""
        return f"Token.file({self._path!r})" if self._path else "Token(...)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Token):
            return NotImplemented
        return (self._path, self._text) == (other._path, other._text)

    def __hash__(self) -> int:
        """Returns a hash that says nothing about the token."""
        return hash((Token, self._path))

    def __copy__(self, memo: object = None) -> Token:
        """Returns itself: a token does not change."""
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the name of a file; the token itself stays in its process."""
        if self._path:
            return Token.file, (self._path,)
        raise TypeError(
            "a token is not pickled, since it would be left in files: give Token.file(path), or "
            f"set {TOKEN} or {TOKEN_FILE}"
        )


class HasToken(Argument):
    """What an `Engine` does with its token."""

    token: Token | str | None

    def __post_init__(self) -> None:
        """Keeps a text from what the object prints as."""
        if self.token is not None and not isinstance(self.token, Token):
            object.__setattr__(self, "token", Token(self.token))


def _checked(text: object) -> str:
    token = text.strip() if isinstance(text, str) else ""
    if not token or not all("!" <= c <= "~" for c in token):
        raise SpecError("token is not one: it must be printable ASCII without spaces")
    return token


def from_environment() -> Token | None:
    """Returns the token that the environment names, or None."""
    if text := os.environ.get(TOKEN):
        return Token(text)
    if path := os.environ.get(TOKEN_FILE):
        return Token.file(path)
    return None


def check_plain(target: str) -> None:
    """Checks that plain text to a target does not leave this machine."""
    if not is_here(target):
        raise SpecError(
            f"a token would go to {target} in plain text, where others can read it: give "
            "credentials=chaski.tls(), or plain_token=True"
        )


def is_here(target: str) -> bool:
    """Reports whether a target is an address of this machine alone."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    host = target.removeprefix("dns:").lstrip("/").rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tls(
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> grpc.ChannelCredentials:
    """Returns the credentials of a client for TLS, from files in PEM.

    Args:
        ca: authorities that the server's certificate must be signed by; default: those of gRPC.
        certificate: the client's own, if the server asks for one.
        key: the key of `certificate`.
    """
    from chaski._grpc import grpc

    if (certificate is None) != (key is None):
        raise SpecError("certificate and key: give both, or neither")
    parts: list[bytes | None] = []
    for name, path in ("ca", ca), ("key", key), ("certificate", certificate):
        try:
            text = None if path is None else pathlib.Path(path).expanduser().read_bytes()
        except (OSError, TypeError) as e:
            raise SpecError(f"{name} is {path!r}, which cannot be read: {e}") from None
        if text is not None and b"-----BEGIN " not in text:
            raise SpecError(f"{name} is {path!r}: it must be a file in PEM, with -----BEGIN")
        parts.append(text)
    return grpc.ssl_channel_credentials(*parts)
