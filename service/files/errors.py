"""What requests about files can end with, besides what the text service answers."""

from __future__ import annotations

from collections.abc import Mapping

from service.files.bounds import FileRefused
from service.http.errors import HttpError


class RefusedFile(HttpError):
    """The file cannot be translated: another type than its name says, broken, or over a bound."""

    def __init__(self, error: FileRefused) -> None:
        super().__init__(str(error), error.detail)
        self.status, self.code = error.status, error.code


class UnknownFileType(HttpError):
    """The file's name has no ending, or one of a type that is not translated."""

    status, code = 415, "unsupported_file"


class UploadsBusy(HttpError):
    """A key is required, none came before the file, and enough files of such requests are coming in."""

    status, code = 503, "uploads_busy"

    def __init__(self, bound: int) -> None:
        message = (
            f"at most {bound} files may come in at a time before their key; send the key as 'Authorization: Bearer "
            "KEY', or as the field api_key before the file, or try again later"
        )
        super().__init__(message, {"bound": bound})


class FileNotFound(HttpError):
    """No job or result of that name, or none of the caller's: which of them is nobody's business."""

    status, code = 404, "file_not_found"

    def __init__(self) -> None:
        super().__init__("there is no such file here, or it is not yours")


class FileGone(HttpError):
    """The result was deleted: its time was over, or the job was cancelled."""

    status, code = 410, "file_gone"


class FileNotReady(HttpError):
    """There is no result yet, or never will be."""

    status, code = 409, "file_not_ready"


class FileFailed(HttpError):
    """The job that the request waited for failed; the message is the job's."""

    status, code = 500, "file_failed"


class FileUnfinished(HttpError):
    """The job that the request waited for was not finished in time; it goes on."""

    status, code = 504, "deadline"

    def __init__(self, job: str, seconds: float) -> None:
        message = (
            f"the file was not finished within {seconds:g} s and is still being translated as job {job}; ask for it "
            f"with GET /files/{job}"
        )
        super().__init__(message, {"id": job})


class TooManyFiles(HttpError):
    """The caller has as much here as it may have; names the bound and the value."""

    status, code = 429, "too_many_files"

    def __init__(self, what: str, bound: int, value: int, remedy: str, whose: str = "of yours") -> None:
        message = f"at most {bound} {what} {whose} may be here at a time, and this file would make {value}; {remedy}"
        super().__init__(message, {"bound": bound, "value": value})

    def headers(self) -> Mapping[str, str]:
        """When to try again, in seconds: a file takes about that long."""
        return {"Retry-After": "30"}


class FilesFull(TooManyFiles):
    """The server stores as much as it may, of all callers."""

    status, code = 503, "files_full"
