"""Streams and errors that the OpenAPI document shows. Invented, and checked against the models by a test."""

from __future__ import annotations

TRANSLATE_EVENTS = (
    "event: sentence\n"
    'data: {"text":0,"sentence":0,"source":{"start":0,"end":13},"translation":"Good morning."}\n\n'
    "event: sentence\n"
    'data: {"text":0,"sentence":1,"source":{"start":14,"end":30},"translation":"How are you?"}\n\n'
    "event: done\n"
    'data: {"translatedText":"Good morning. How are you?"}\n\n'
)
SUMMARIZE_EVENTS = (
    "event: summary\n"
    'data: {"text":0,"source":{"start":0,"end":46},"summary":"a study of how"}\n\n'
    "event: done\n"
    'data: {"summary":"a study of how","truncated":false,"method":"model","model":"arxiv-title",'
    '"usage":{"characters":46,"source_tokens":11,"target_tokens":4},'
    '"time":{"queue":0.0003,"encode":0.0042,"decode":0.0127,"total":0.019}}\n\n'
)

ERRORS: dict[int, tuple[str, str, str]] = {
    400: ("Malformed: broken JSON, invalid UTF-8.", "bad_request", "the request is not valid UTF-8 at byte 7"),
    401: ("No key, where keys are asked for.", "key_missing",
          "this server asks for a key; send it as 'Authorization: Bearer KEY', or as the field api_key"),
    403: ("A key that is not valid, or not for this.", "key_invalid",
          "this key is not valid, or not any more; ask those who run this server for one"),
    404: ("Model, language or pair not served, or nothing of that name.", "pair_not_served",
          "this server does not translate en-de; pairs served: de-en"),
    405: ("Another method.", "method_not_allowed", "this route answers POST"),
    408: ("The body did not arrive in time.", "body_timeout", "the body did not arrive within 60 s; send it again"),
    409: ("Not as things are now.", "model_in_use",
          "de-en stands for de-en@2: load another version, or unload de-en as a whole"),
    410: ("Not here any more.", "file_gone", "the result was deleted: its time was over; send the file again"),
    413: ("Over the limit of characters or bytes.", "too_large",
          "a request may have at most 20000 characters, but this one has 100000; send it in several requests"),
    415: ("Content type not read here.", "unsupported_media_type", "content type 'text/csv' is not read here; ..."),
    422: ("A field breaks its bounds.", "invalid_field", "beam_size: must be at most 10, but is 11"),
    429: ("Over the key's rate or quota; see Retry-After.", "rate_limited",
          "at most 60 requests a minute; try again in 12 s"),
    500: ("Failed on our side; the id is in the log.", "decoding_failed",
          "decoding failed on our side; the incident 0a1b2c3d4e5f was logged"),
    503: ("Overloaded, starting or shutting down; see Retry-After.", "overloaded",
          "the queue is full: at most 65536 predicted tokens may wait and 65490 do; try again in 12 s"),
    504: ("The deadline passed.", "deadline",
          "the deadline passed before the text was finished; send less text or allow more time"),
}  # fmt: skip
"""By status: what it means, and the code and the sentence of an example."""
