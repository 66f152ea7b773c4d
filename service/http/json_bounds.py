"""Bounds of JSON that are checked on its bytes, before a parser recurses into it or converts a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.http.errors import BadRequest

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class JsonBounds:
    """What a JSON body may amount to besides its bytes.

    Attributes:
        depth: levels to which its arrays and objects nest.
        number: characters of a number.
    """

    depth: int
    number: int

    def check(self, body: bytes) -> None:
        """Linear in the body's length, and next to nothing for one that holds little but a text.

        Raises:
            BadRequest: over a bound, with bound and value.
        """
        number = re.compile(rb"[0-9][-+.0-9eE]{%d}" % self.number)
        deep = body.count(b"[") + body.count(b"{") > self.depth
        if not deep and not number.search(body):
            return
        outside = _STRING.sub(b'""', body)
        if number.search(outside):
            message = f"a number in the JSON body may have at most {self.number} characters, but one has more"
            raise BadRequest(message, {"bound": self.number})
        depth = 0
        for match in _BRACKET.finditer(outside):
            depth += 1 if match[0] in b"[{" else -1
            if depth > self.depth:
                message = f"the JSON body may nest at most {self.depth} levels deep, but this one goes deeper"
                raise BadRequest(message, {"bound": self.depth})
