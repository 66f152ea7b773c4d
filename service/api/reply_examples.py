"""What the OpenAPI document shows of replies whose routes have nothing else to say about them."""

from __future__ import annotations

from typing import Any

_GLOSSARY = {
    "glossary_id": "def3a26b-3e84-45b3-84ae-0c0aaf3525f7",
    "name": "Railway",
    "ready": True,
    "source_lang": "de",
    "target_lang": "en",
    "creation_time": "2030-12-31T09:30:00.000000+00:00",
    "entry_count": 2,
}
_DICTIONARY = {"source_lang": "de", "target_lang": "en", "entry_count": 2}
_MULTILINGUAL = {
    "glossary_id": "def3a26b-3e84-45b3-84ae-0c0aaf3525f7",
    "name": "Railway",
    "dictionaries": [_DICTIONARY],
    "creation_time": "2030-12-31T09:30:00.000000+00:00",
}
_FILE = {
    "id": "NOHlCxQJFUT3mXJA1wRBYXHedvrbwNVj",
    "name": "letter.docx",
    "status": "done",
    "progress": 1.0,
    "source": "de",
    "target": "en",
    "characters": 1840,
    "created": "2030-12-31T09:30:00.000000Z",
    "finished": "2030-12-31T09:30:04.120000Z",
    "expires": "2031-01-01T09:30:04.120000Z",
    "result": "/files/NOHlCxQJFUT3mXJA1wRBYXHedvrbwNVj/result",
    "result_name": "letter.en.docx",
}
_MODEL = {
    "name": "de-en@2",
    "alias": "de-en",
    "current": True,
    "task": "translate",
    "source_languages": ["de"],
    "sources": 1,
    "target_language": "en",
    "architecture": "…",
    "runtime": "onnx",
    "precision": "int8",
    "licence": "CC-BY-2.0",
    "attribution": ["Sentences from www.manythings.org/anki and tatoeba.org"],
    "scores": [{"metric": "BLEU", "value": 41.7, "test_set": "tatoeba-de-en/test"}],
    "state": "ready",
}

EXAMPLES: dict[tuple[str, str], Any] = {
    ("post", "/detect"): [{"language": "de", "confidence": 98.0}],
    ("get", "/languages"): [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ],
    ("get", "/models"): [_MODEL, {"name": "en-de@1", "alias": "en-de", "state": "loading"}],
    ("get", "/healthz"): {"status": "ok"},
    ("get", "/health"): {"status": "ok"},
    ("get", "/readyz"): {"status": "ready"},
    ("get", "/frontend/settings"): {
        "charLimit": 20000,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": [".docx", ".html", ".srt", ".txt"],
        "language": {"source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "en", "name": "English"}},
    },
    ("get", "/v2/languages"): [{"language": "DE", "name": "German"}],
    ("get", "/v2/usage"): {"character_count": 4711, "character_limit": 500000},
    ("get", "/v2/glossary-language-pairs"): {"supported_languages": [{"source_lang": "de", "target_lang": "en"}]},
    ("get", "/v2/glossaries"): {"glossaries": [_GLOSSARY]},
    ("post", "/v2/glossaries"): _GLOSSARY,
    ("get", "/v2/glossaries/{glossary_id}"): _GLOSSARY,
    ("get", "/v3/glossaries"): {"glossaries": [_MULTILINGUAL]},
    ("post", "/v3/glossaries"): _MULTILINGUAL,
    ("get", "/v3/glossaries/{glossary_id}"): _MULTILINGUAL,
    ("patch", "/v3/glossaries/{glossary_id}"): _MULTILINGUAL,
    ("put", "/v3/glossaries/{glossary_id}/dictionaries"): _DICTIONARY,
    ("get", "/v3/glossaries/{glossary_id}/entries"): {
        "dictionaries": [
            {"source_lang": "de", "target_lang": "en", "entries": "Gleis\ttrack", "entries_format": "tsv"},
        ]
    },
    ("get", "/files"): [_FILE],
    ("get", "/files/{id}"): _FILE,
}
"""By method and path, for the reply of success."""


def add_examples(paths: dict[str, Any]) -> None:
    """Put them into the document's paths, where a route shows none itself."""
    for (method, path), example in EXAMPLES.items():
        for status, response in paths[path][method]["responses"].items():
            content = response.get("content", {}).get("application/json")
            if status.startswith("2") and content is not None and not {"example", "examples"} & set(content):
                content["example"] = example
