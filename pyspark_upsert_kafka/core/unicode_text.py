"""Whether a text can be sent: JSON can spell what no encoding has."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can spell and nobody can send.

    >>> is_unicode("Ü"), is_unicode(chr(0xD800))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
