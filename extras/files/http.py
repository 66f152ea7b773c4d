"""What files bring to the HTTP side."""

from __future__ import annotations

from tandem.extras.files.errors import ERRORS
from tandem.extras.files.formats import FORMATS
from tandem.extras.files.routes import body_bounds, router
from tandem.service.http.parts import HttpPart

HTTP = HttpPart(
    routes=router.routes,
    errors=ERRORS,
    bodies=body_bounds,
    tags=({"name": "files", "description": "Translate documents, in the background."},),
    file_endings=tuple(FORMATS),
)
