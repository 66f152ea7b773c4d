"""Requests, replies and errors that the OpenAPI document shows. Invented, and checked against the models by a test."""

from __future__ import annotations

from typing import Any

Examples = dict[str, Any]

TRANSLATE_EXAMPLES: Examples = {
    "sentence": {"value": {"q": "Wo ist der Bahnhof?", "source": "de", "target": "en"}},
    "language to be detected": {"value": {"q": ["Guten Morgen.", "Good morning."], "target": "en"}},
    "texts with alternatives and details": {
        "value": {
            "q": ["Guten Morgen.", "Wie geht es dir?"], "source": "de", "target": "en",
            "alternatives": 2, "beam_size": 5, "details": True,
        }
    },
    "web page": {
        "value": {"q": "<p>Ein <b>rotes</b> Haus</p>", "source": "de", "target": "en", "format": "html"}
    },
    "glossary and protected parts": {
        "value": {
            "q": "Die Weiche bei {ort} wird nach https://example.org/plan erneuert.", "source": "de", "target": "en",
            "glossary": {"Weiche": "turnout"}, "protect": ["placeholders", "urls"],
        }
    },
    "one text in three languages": {
        "value": {
            "q": "Zwei Hunde spielen im Schnee.", "source": "de", "target": "en",
            "others": {"fr": "Deux chiens jouent dans la neige.", "cs": "Dva psi si hrají ve sněhu."},
        }
    },
    "words aligned": {"value": {"q": "Guten Morgen.", "source": "de", "target": "en", "alignments": True}},
    "sampled": {
        "value": {"q": "Guten Morgen.", "source": "de", "target": "en", "sampling": {"temperature": 0.7, "seed": 1}}
    },
    "sentence by sentence": {
        "value": {"q": "Guten Morgen. Wie geht es dir?", "source": "de", "target": "en", "stream": True}
    },
}  # fmt: skip
_MORNING_DETAILS: Examples = {
    "source": {"start": 0, "end": 13}, "target": {"start": 0, "end": 13}, "score": -0.41,
    "tokens": ["▁Good", "▁morning", "."],
}  # fmt: skip
_COUNTS: Examples = {
    "model": "de-en",
    "usage": {"characters": 13, "source_tokens": 3, "target_tokens": 3},
    "time": {"queue": 0.0004, "encode": 0.0031, "decode": 0.0122, "total": 0.0181},
}
TRANSLATE_REPLIES: Examples = {
    "sentence": {"value": {"translatedText": "Where is the train station?"}},
    "languages detected": {
        "value": {
            "translatedText": ["Good morning.", "Good morning."],
            "detectedLanguage": [
                {"language": "de", "confidence": 98.0}, {"language": "en", "confidence": 97.0},
            ],
        }
    },
    "alternatives": {
        "value": {"translatedText": "Good morning.", "alternatives": ["A good morning.", "Morning."]}
    },
    "details": {
        "value": {"translatedText": "Good morning.", "details": [{"sentences": [_MORNING_DETAILS]}], **_COUNTS}
    },
    "words aligned": {
        "value": {
            "translatedText": "Good morning.",
            "details": [{"sentences": [_MORNING_DETAILS | {
                "alignment": {
                    "tokens": {
                        "source": ["▁Guten", "▁Morgen", "."], "target": ["▁Good", "▁morning", "."],
                        "weights": [[0.71, 0.2, 0.05], [0.12, 0.77, 0.06], [0.06, 0.09, 0.68]],
                    },
                    "words": [
                        {"source": {"start": 0, "end": 5}, "target": {"start": 0, "end": 4}},
                        {"source": {"start": 6, "end": 12}, "target": {"start": 5, "end": 12}},
                        {"source": {"start": 12, "end": 13}, "target": {"start": 12, "end": 13}},
                    ],
                },
            }]}],
            **_COUNTS,
        }
    },
    "glossary and protected parts": {
        "value": {
            "translatedText": "The turnout at {ort} is renewed according to https://example.org/plan.",
            "protected": [{"text": "{ort}", "kept": True}, {"text": "https://example.org/plan", "kept": True}],
            "glossary": [{"source": "Weiche", "target": "turnout", "found": True}],
        }
    },
}  # fmt: skip
TRANSLATE_EVENTS = (
    "event: sentence\n"
    'data: {"text":0,"sentence":0,"source":{"start":0,"end":13},"translation":"Good morning."}\n\n'
    "event: sentence\n"
    'data: {"text":0,"sentence":1,"source":{"start":14,"end":30},"translation":"How are you?"}\n\n'
    "event: done\n"
    'data: {"translatedText":"Good morning. How are you?"}\n\n'
)

POSTEDIT_EXAMPLES: Examples = {
    "sentence": {
        "value": {"q": "Click the OK button.", "translation": "Klicken auf die OK Schaltfläche.", "target": "de"}
    },
    "texts with scores": {
        "value": {
            "q": ["Save the file.", "Close the window."],
            "translation": ["Speichern der Datei.", "Schließen des Fenster."],
            "scores": True,
        }
    },
}
SUMMARIZE_EXAMPLES: Examples = {
    "abstract": {"value": {"q": "We study how ... Our experiments show that ...", "max_length": 30}},
    "texts with alternatives": {
        "value": {"q": ["We study how ...", "This paper ..."], "language": "en", "alternatives": 1}
    },
}
SUMMARIZE_REPLIES: Examples = {
    "abstract": {
        "value": {
            "summary": "a study of how", "truncated": False, "model": "arxiv-title",
            "usage": {"characters": 46, "source_tokens": 11, "target_tokens": 4},
            "time": {"queue": 0.0003, "encode": 0.0042, "decode": 0.0127, "total": 0.0190},
        }
    },
}  # fmt: skip
SUMMARIZE_EVENTS = (
    "event: summary\n"
    'data: {"text":0,"source":{"start":0,"end":46},"summary":"a study of how"}\n\n'
    "event: done\n"
    'data: {"summary":"a study of how","truncated":false,"model":"arxiv-title",'
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
