"""Texts without secrets: users, passwords and queries of URIs, and keys.

What an engine says has passed through fault/secrets.go, which says more of a URI. Texts of this
package are few, so that what may be a secret goes without further questions.
"""

from __future__ import annotations

import re

_HIDDEN = "…"
# Two letters or digits before the colon: one would be a drive of Windows. URIs in queries are
# percent-encoded, again in queries of queries, and JSON may have \/ or \u002f for "/". GDAL's names
# begin with /vsiNAME/, or with /vsiNAME? and options, and a URI whose scheme is forgotten with two
# slashes, which no part of a path is before.
_URI = re.compile(
    r"([a-zA-Z0-9+.-][a-zA-Z0-9](?::|%(?:25)*3[aA])(?:\\*/|\\+u002[fF]|%(?:25)*2[fF])+"
    r"|(?<![a-zA-Z0-9_.~/:\\%+@-])(?:\\*/|\\+u002[fF]|%(?:25)*2[fF]){2}"
    r'|/vsi[a-z0-9_]+[/?])([^\t\n\f\r "]*)'
)
_AT = re.compile(r"@|%(?:25)*40")
_QUERY = re.compile(r"\?|%(?:25)*3[fF]")
# Before the "@" of these schemes is the name of a container.
_AZURE = re.compile(r"(?i:(?<![a-z0-9+.-])(?:abfs|wasb)s?://)[a-z0-9$-]+@")
_NO_AT = "\ue000"  # in place of such an "@": no text has it
_VALUE = re.compile(
    r"((?:[?&;#]|\\u0026)(?:sig|signature|token|access_token|key|api_?key|password|passwd|pwd|"
    r"secret|credential|awsaccesskeyid|googleaccessid|key-pair-id|policy|subscription-key|"
    r'x-(?:amz|goog|ms|oss|cos)-[a-z-]+)=)[^&;\t\n\f\r "\\]+',
    re.IGNORECASE,
)
# Letters before a name are of ASCII: ignoring case, [a-z] has "ſ", too.
_CONNECTION = re.compile(
    r"(?<![a-zA-Z0-9_])(?i:(AccountKey|SharedAccessKey|SharedAccessSignature)=)"
    r'[^;\t\n\f\r "\\]+'
)


def without_secrets(text: str) -> str:
    """Returns a text without the users, passwords, queries and keys of the URIs in it."""
    if "/" in text or "2f" in text or "2F" in text:  # the patterns are slow beside a search
        text = _AZURE.sub(lambda m: m[0][:-1] + _NO_AT, text)
        text = _URI.sub(_hide, text).replace(_NO_AT, "@")
    if "=" in text:
        text = _VALUE.sub(lambda m: f"{m[1]}{_HIDDEN}{_colon(m[0])}", text)
        text = _CONNECTION.sub(rf"\1={_HIDDEN}", text)
    return text


def _hide(uri: re.Match[str]) -> str:
    """Returns a URI, or several without a blank between, without what may be secret."""
    scheme, rest = uri.groups()
    if scheme.endswith("?"):
        return f"{scheme}{_HIDDEN}{_colon(rest)}"
    if marks := [m.start() for m in _AT.finditer(rest)]:
        rest = _HIDDEN + rest[marks[-1] :]
    if (query := _QUERY.search(rest)) and query.end() < len(rest):
        rest = rest[: query.end()] + _HIDDEN + _colon(rest)
    return scheme + rest


def _colon(secret: str) -> str:
    """Returns the colon at the end of a secret: it comes after the file of an error."""
    return ":" if secret.endswith(":") else ""
