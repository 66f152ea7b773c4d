"""Finding a device that neither answers nor fails: a call of a model that does not end while the process goes on."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog

from tandem.models.errors import DeviceLost
from tandem.service.engine.dispatcher import Dispatcher
from tandem.service.engine.failures import DecodingFailed
from tandem.service.engine.worker import Worker

_log = structlog.get_logger("tandem.engine")
_LOOKS = 12  # that see the same call: counted, not timed, since a process that was stopped has not waited


class StallWatch:
    """Looks at workers from time to time, and gives the device up where a call of one has not ended for too long."""

    def __init__(self, dispatcher: Dispatcher, workers: Sequence[Worker], seconds: float) -> None:
        """
        Args:
            dispatcher: of the workers; it is told that the device is lost.
            workers: to look at.
            seconds: that a call may take.
        """
        self._dispatcher, self._workers, self._seconds = dispatcher, workers, seconds
        self._seen = [(0, 0)] * len(workers)  # the last call of each, and the further looks that saw it

    def run(self) -> None:
        while not self._dispatcher.wait_until_stopped(self._seconds / _LOOKS):
            if self.stalled():
                error = DeviceLost(f"the device has not answered for {self._seconds:g} s")
                failure = DecodingFailed(uuid.uuid4().hex[:12])
                _log.error("device_stalled", incident=failure.incident, seconds=self._seconds)
                self._dispatcher.lose(error, failure)

    def stalled(self) -> bool:
        """Look once; whether a worker has been seen in one call so often that its device is lost."""
        for place, worker in enumerate(self._workers):
            call, looks = self._seen[place]
            same = worker.busy and worker.calls == call
            self._seen[place] = worker.calls, looks + 1 if same else 0
        return any(looks >= _LOOKS for _, looks in self._seen)
