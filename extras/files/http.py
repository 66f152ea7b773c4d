"""What files bring to the HTTP side."""

from __future__ import annotations

from extras.files.errors import ERRORS
from extras.files.formats import FORMATS
from extras.files.routes import body_bounds, router
from service.http.ports import HttpPart

HTTP = HttpPart(
    routes=router.routes,
    errors=ERRORS,
    bodies=body_bounds,
    tags=({"name": "files", "description": "Translate documents, in the background."},),
    file_endings=tuple(FORMATS),
)
