"""Text as bytes, under the names and by the rules of Java's charsets."""

from __future__ import annotations

import codecs
from dataclasses import dataclass


@dataclass(frozen=True)
class Charset:
    """How text becomes bytes.

    Args:
        name: Name of the Python codec.
        write: Name of the Python codec that writes, when it is another.
        mark: What stands before a text that is written.
    """

    name: str
    write: str = ""
    mark: bytes = b""

    def bytes_of(self, text: str) -> bytes:
        """The bytes of a text. Raises ValueError for a character that the charset lacks.

        Java would write a question mark. A text is refused too that would be read as another one, or as none: some
        charsets have the same bytes for two characters, or take a mark away that nobody wrote.
        """
        data = self.mark + text.encode(self.write or self.name)
        if self._read(data) != text:
            raise ValueError(f"{self.name!r} has no bytes that are read as {text!r} again")
        return data

    def _read(self, data: bytes) -> str | None:
        try:
            return self.text_of(data)
        except ValueError:
            return None

    def text_of(self, data: bytes) -> str:
        """The text of bytes. Raises ValueError when they are none; Java would make some up."""
        marks = _MARKS.get(self.name)
        text = data.decode(self.name if marks is None or data.startswith(marks) else self.write)
        text.encode()  # Python's UTF-7 lets halves of surrogate pairs pass, which no column can hold
        return text


UTF_8 = Charset("utf-8")

_MARKS = {
    "utf-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
    "utf-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE),
}
# Without a byte order mark Java takes big-endian, Python what the machine has. Java writes a mark for
# the first and none for the second.
_JAVAS_OWN = {
    "utf-16": Charset("utf-16", "utf-16-be", codecs.BOM_UTF16_BE),
    "utf-32": Charset("utf-32", "utf-32-be"),
}


# Codecs of text that are no charsets: IDNA makes one text of two that differ in case only.
_PYTHONS_OWN = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})


def charset(name: str) -> Charset:
    """The charset of that name. Raises ValueError."""
    try:
        codec = codecs.lookup(name.strip()).name
        "".encode(codec)  # LookupError for a codec that is not one of text, such as zlib
    except LookupError:
        codec = ""
    if not codec or codec in _PYTHONS_OWN:
        raise ValueError("expected the name of a charset")
    return _JAVAS_OWN.get(codec, Charset(codec))
