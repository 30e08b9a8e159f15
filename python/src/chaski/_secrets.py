"""Texts without secrets, by the rules of fault/secrets.go."""

from __future__ import annotations

import re

_SCHEME = r"(\b[a-zA-Z][a-zA-Z0-9+.-]+:/{1,2})"
_SLASHED_PASSWORD = re.compile(_SCHEME + r'[^/@:\s"]*:[0-9]*[^0-9/@\s"?][^@\s"?]*@')
_USER = re.compile(_SCHEME + r'[^/\s"]*@')
_QUERY = re.compile(_SCHEME + r'([^?\s"]*\?)(?:[^\s"\\]|\\[^"])+')
_VALUE = re.compile(
    r"((?:[?&;]|\\u0026)(?:sig|signature|token|access_token|key|api_?key|password|passwd|pwd|"
    r"secret|credential|awsaccesskeyid|googleaccessid|key-pair-id|policy|subscription-key|"
    r'x-(?:amz|goog|ms|oss|cos)-[a-z-]+)=)[^&;\s"\\]+',
    re.IGNORECASE,
)
_CONNECTION = re.compile(
    r'\b(AccountKey|SharedAccessKey|SharedAccessSignature)=[^;\s"\\]+', re.IGNORECASE
)


def _colon(match: str) -> str:
    """Returns the colon at the end of a match: it comes after the file of an error."""
    return ":" if match.endswith(":") else ""


def without_secrets(text: str) -> str:
    """Returns a text without the users, passwords, queries and keys of the URIs in it."""
    # Each pattern is slow beside a search for the character that it needs, and few texts have it.
    if ":/" in text and "@" in text:
        text = _SLASHED_PASSWORD.sub(r"\1…@", text)
        text = _USER.sub(r"\1…@", text)
    if ":/" in text and "?" in text:
        text = _QUERY.sub(lambda m: f"{m[1]}{m[2]}…{_colon(m[0])}", text)
    if "=" in text:
        text = _VALUE.sub(lambda m: f"{m[1]}…{_colon(m[0])}", text)
        text = _CONNECTION.sub(r"\1=…", text)
    return text
