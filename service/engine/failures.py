"""What the engine refuses or fails with. Mapped to HTTP in ``service/http/error_replies.py``.

TandemError
├── Overloaded         the queue is full; ``retry_after`` says when to come back
├── Draining           the engine takes no new work
├── DeadlinePassed     the job's deadline went by before it was finished
├── UnknownModel       no bundle of that name is loaded
└── DecodingFailed     a step crashed; ``incident`` is the id under which the cause was logged
"""

from __future__ import annotations

from tandem.models.errors import TandemError


class Overloaded(TandemError):
    """The queue is full.

    Attributes:
        retry_after: seconds after which the queue is expected to have room.
    """

    def __init__(self, queued: int, bound: int, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(
            f"the queue is full: at most {bound} predicted tokens may wait and {queued} do; "
            f"try again in {retry_after:.0f} s"
        )


class Draining(TandemError):
    """The engine is shutting down and takes no new work."""

    retry_after = 5.0

    def __init__(self) -> None:
        super().__init__("the service is shutting down and takes no new work; try again in a moment")


class DeadlinePassed(TandemError):
    """A job's deadline went by before it was finished."""

    def __init__(self) -> None:
        super().__init__("the deadline passed before the text was finished; send less text or allow more time")


class UnknownModel(TandemError):
    """No bundle of that name is loaded."""


class DecodingFailed(TandemError):
    """A step crashed, and with it every sentence of its batch.

    Attributes:
        incident: the id under which the cause was logged; ``detail`` has it for machines.
    """

    def __init__(self, incident: str) -> None:
        self.incident, self.detail = incident, {"incident": incident}
        super().__init__(f"decoding failed on our side; the incident {incident} was logged")
