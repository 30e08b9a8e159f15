"""Texts without secrets, by the rules of fault/secrets.go in the same order.

Both are tested with fault/testdata/secrets.json.
"""

from __future__ import annotations

import re

_HIDDEN = "…"
_WORD = re.compile(r'[^\t\n\f\r "]+')
# Two letters or digits: one would be a drive of Windows. GDAL's names begin with /vsiNAME/ in place
# of a scheme.
_SCHEME = re.compile(r"[a-zA-Z0-9+.-][a-zA-Z0-9]:/|/vsi[a-z0-9_]+/")
_HTTP = re.compile(r"https?:/", re.IGNORECASE)
# Before the "@" of these schemes is the name of a container.
_AZURE = re.compile(r"(?:^|[^a-z0-9+.-])(?:abfs|wasb)s?\Z", re.IGNORECASE)
_CONTAINER = re.compile(r"[a-z0-9$-]+")
# An IPv6 address has colons, which begin no password.
_IPV6 = re.compile(r"\[[0-9a-fA-F:.]*(?:%[^\]]*)?\](?::[0-9]*)?")
# URIs in queries are percent-encoded, again in queries of queries, and JSON may have \/ or \u002f
# for "/".
_ENCODED_SCHEME = re.compile(
    r"[a-zA-Z0-9+.-][a-zA-Z0-9](?:%(?:25)*3[aA](?:%(?:25)*2[fF]){1,2}|:(?:\\+(?:/|u002[fF])){1,2})"
)
_ENCODED_SLASH = re.compile(r"/|%(?:25)*2[fF]|\\u002[fF]")
_ENCODED_AT = re.compile(r"@|%(?:25)*40")
_ENCODED_QUERY = re.compile(r"\?|%(?:25)*3[fF]")
# Only HTTP has queries without a value. In other URIs "?" is a wildcard unless a name and "="
# follow. Stores encode both where they take a query for a part of a key. The bound keeps the time
# of many "%3F" linear.
_PARAMETER = re.compile(r"[a-zA-Z0-9_.%-]{0,99}(?:=|%(?:25)*3[dD])")
_AT_OR_QUERY = re.compile(r"[@?]")
# GDAL's names may have options, such as headers and cookies: /vsicurl?OPTION=VALUE&url=URL.
_VSI = re.compile(r'/vsi[a-z0-9_]+\?[^\t\n\f\r "]+')
_VSI_OPTION = re.compile(r"((?:[?&]|\\u0026)([^=&?\\]*)=)((?:[^&\\]|\\[^u])*)")
_VALUE = re.compile(
    r"((?:[?&;#]|\\u0026)(?:sig|signature|token|access_token|key|api_?key|password|passwd|pwd|"
    r"secret|credential|awsaccesskeyid|googleaccessid|key-pair-id|policy|subscription-key|"
    r'x-(?:amz|goog|ms|oss|cos)-[a-z-]+)=)[^&;\t\n\f\r "\\]+',
    re.IGNORECASE,
)
# Letters before a name are of ASCII: ignoring case, [a-z] has "ſ", too.
_CONNECTION = re.compile(
    r"(?<![a-zA-Z0-9_])(?i:(AccountKey|SharedAccessKey|SharedAccessSignature)=)"
    r'[^;\t\n\f\r "\\]+',
)


def without_secrets(text: str) -> str:
    """Returns a text without the users, passwords, queries and keys of the URIs in it."""
    # Each pattern is slow beside a search for the character that it needs, and few texts have it.
    if "/vsi" in text and "?" in text:
        text = _VSI.sub(lambda m: _VSI_OPTION.sub(_without_option, m[0]), text)
    if (":/" in text or "/vsi" in text) and any(c in text for c in ("@", "?", "3F", "3f")):
        text = _WORD.sub(lambda m: _without_query(_without_users(m[0])), text)
    if ("%" in text and ("2F" in text or "2f" in text)) or ":\\" in text:
        text = _WORD.sub(lambda m: _without_encoded(m[0]), text)
    if "=" in text:
        text = _VALUE.sub(lambda m: f"{m[1]}{_HIDDEN}{_colon(m[0])}", text)
        text = _CONNECTION.sub(rf"\1={_HIDDEN}", text)
    return text


def _without_option(match: re.Match[str]) -> str:
    """Hides the value of an option, unless it is a URL: the other rules hide the secrets of it."""
    return match[0] if match[2] == "url" else match[1] + _hide_query(match[3])


def _without_users(word: str) -> str:
    """Hides the users and passwords of the URIs of a word."""
    if "@" not in word:
        return word
    out, done, mark = [], 0, 0
    for scheme in _SCHEME.finditer(word):
        first = scheme.end()
        if first < done:  # inside of a password
            continue
        if word.startswith("/", first):  # a cleaned path has one slash after its scheme
            first += 1
        if mark < first:  # searched once for all URIs before it
            found = _AT_OR_QUERY.search(word, first)
            mark = found.start() if found else len(word)
        last = _end_of_user(word, first, mark)
        name = word[max(0, scheme.end() - len("-abfss:/")) : scheme.end() - len(":/")]
        if last < 0 or (_AZURE.search(name) and _CONTAINER.fullmatch(word, first, last)):
            continue
        out += [word[done:first], _HIDDEN]
        done = last
    return "".join([*out, word[done:]])


def _end_of_user(word: str, first: int, mark: int) -> int:
    """Returns where the user and the password end that begin at first, or -1.

    mark is the next "@" or "?".
    """
    slash = word.find("/", first)
    authority = word[first : slash if slash >= 0 else len(word)]
    user = authority.rfind("@")
    if user >= 0:
        return first + user
    # A password with "/" follows a colon. Only digits would be a port, and an "@" after them would
    # belong to the path.
    password = authority.partition(":")[2]
    if (
        not password.strip("0123456789")
        or word[mark : mark + 1] != "@"
        or _IPV6.fullmatch(authority)
    ):
        return -1
    return mark


def _without_query(word: str) -> str:
    """Hides the query of a word as a whole.

    A list of the names of secrets would always lack one.
    """
    uri = _SCHEME.search(word)
    if uri is None:
        return word
    web = _HTTP.search(word)
    first = uri.end()
    while mark := _ENCODED_QUERY.search(word, first):
        first = mark.end()
        if (web and web.end() <= first and mark[0] == "?") or _PARAMETER.match(word, first):
            return word[:first] + _hide_query(word[first:])
    return word


def _without_encoded(word: str) -> str:
    """Hides the users, passwords and queries of the encoded URIs of a word."""
    out, done, start = [], 0, -1
    for scheme in _ENCODED_SCHEME.finditer(word):
        first = scheme.end()
        start = first if start < 0 else start
        slash = _ENCODED_SLASH.search(word, first)
        last = -1
        for mark in _ENCODED_AT.finditer(word, first, slash.start() if slash else len(word)):
            last = mark.start()
        if last >= 0:
            out += [word[done:first], _HIDDEN]
            done = last
    if start < 0:
        return word
    word = "".join([*out, word[done:]])
    query = _ENCODED_QUERY.search(word, start)
    return word[: query.end()] + _hide_query(word[query.end() :]) if query else word


def _hide_query(query: str) -> str:
    """Returns what takes the place of a query at the end of a word.

    In JSON, a backslash before the quote that ends the word belongs to that; two of them are a
    backslash of the query.
    """
    backslashes = len(query) - len(query.rstrip("\\"))
    end = query[: len(query) - backslashes % 2]
    if not end:
        return query
    return _HIDDEN + _colon(end) + query[len(end) :]


def _colon(secret: str) -> str:
    """Returns the colon at the end of a secret: it comes after the file of an error."""
    return ":" if secret.endswith(":") else ""
