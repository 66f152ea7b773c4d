"""Writes ``docs/api.md`` from the service's OpenAPI document: routes, fields, bounds, errors, examples with curl."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from service.app import create_app
from service.http.document import FORM
from service.settings import Settings

Schema = dict[str, Any]

_DEEPL = ("/v2/", "/v3/")

_INTRODUCTION = """\
# The HTTP interface

One server speaks three dialects: its own, LibreTranslate's and DeepL's. The first two share `POST /translate`: ours is
a superset. This page is written by `python -m deploy.reference` from the document that the server itself gives at
`/openapi.json` and shows at `/docs`; limits are those of the default settings ([configuration](configuration.md)).

## What holds for all routes

- **Bodies** are JSON (`application/json`), a form (`application/x-www-form-urlencoded` or `multipart/form-data`), or,
  for short requests, the query string alone. Text is UTF-8. Unknown JSON fields are refused with 422; unknown fields of
  forms and query strings are ignored, since clients of other services send extras.
- **Keys**, where the server asks for them: `Authorization: Bearer KEY`, or the field `api_key`; DeepL's clients send
  `Authorization: DeepL-Auth-Key KEY`. Routes that take one say so.
- **Errors** are `{"error": a sentence for people, "code": for programs, "detail"?: …, "request_id": …}`; under `/v2/`
  and `/v3/` they are `{"message", "detail"?}`. A 422 lists each bad field in `detail` with `field`, `message` and
  `value`. 429 and 503 carry `Retry-After` in seconds.
- **`X-Request-ID`** is taken over or made, sent back, and stands in every line of the log.
- **Offsets** count characters (Unicode code points) of the text in Unicode NFC without control characters other than
  tabs and line ends, from 0, the end excluded.
- **Examples** show what replies look like; what a model writes differs from model to model. Those of `others` and of
  `POST /postedit` need a model that reads several texts, which does not ship with the server; without one they are 404.
  A name in braces, `{glossary_id}`, stands for one that an earlier reply gave."""


def api_page() -> str:
    """The page, as the app with its default settings describes itself."""
    document = create_app(Settings.model_construct()).openapi()
    groups: dict[str, list[str]] = {}
    overview = ["## Routes", "", "| route | does | key |", "|---|---|---|"]
    for path, method, operation in _operations(document):
        title = f"{method.upper()} {path}"
        summary = _lines(_text(operation))[0].split(". ")[0].rstrip(".")
        overview.append(f"| [`{title}`](#{_anchor(title)}) | {_cell(summary)} | {_key(operation)} |")
        groups.setdefault(operation.get("tags", ["other"])[0], []).append(_route(document, title, operation))
    texts = {tag["name"]: tag["description"] for tag in document["tags"]}
    order = sorted(groups, key=lambda name: [*texts, name].index(name))
    parts = [_INTRODUCTION, "\n".join(overview)]
    for name in order:
        parts += [f"## {name[0].upper()}{name[1:]}", *([texts[name]] if name in texts else []), *groups[name]]
    return "\n\n".join([*parts, _errors(document), _objects(document)]) + "\n"


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _text(operation: Schema) -> str:
    return str(operation.get("description") or operation["summary"]).strip()


def _key(operation: Schema) -> str:
    kinds = operation["security"]
    if not kinds:
        return ""
    return "where asked for" if {} in kinds else "admin"


def _route(document: Schema, title: str, operation: Schema) -> str:
    parts = [f"### {title}", _text(operation)]
    if operation.get("parameters"):
        rows = [_parameter(document, one) for one in operation["parameters"]]
        parts.append("\n".join(["| parameter | in | type | default | meaning |", "|---|---|---|---|---|", *rows]))
    body = operation.get("requestBody")
    if body:
        parts += list(_body(document, title, body))
    elif "{" not in title and title.startswith("GET"):
        parts.append(_shell(f"curl http://127.0.0.1:8000{title.split()[1]}"))
    return "\n\n".join([*parts, *_replies(operation["responses"])])


def _parameter(document: Schema, one: Schema) -> str:
    schema = one["schema"]
    default = "required" if one.get("required") else _default(schema)
    meaning = _meaning(one.get("description", ""), schema)
    return f"| `{one['name']}` | {one['in']} | {_type(schema)} | {default} | {meaning} |"


def _body(document: Schema, title: str, body: Schema) -> Iterator[str]:
    kinds = body["content"]
    listed = ", ".join(f"`{kind}`" for kind in kinds)
    yield f"Body: {listed}. {body.get('description', '')}".strip()
    first = next(iter(kinds.values()))
    schema = _resolved(document, first["schema"])
    if schema.get("properties"):
        yield _table(schema)
    examples = first.get("examples") or ({"": {"value": first["example"]}} if "example" in first else {})
    for name, example in examples.items():
        if "application/json" in kinds:
            yield (f"For example, {name}:\n\n" if name else "") + _shell(_curl(title, example["value"]))


def _curl(title: str, content: Any) -> str:
    method, path = title.split()
    text = json.dumps(content, ensure_ascii=False)
    verb = "" if method == "POST" else f"-X {method} "
    return f"curl {verb}http://127.0.0.1:8000{path} -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text)}"


def _replies(responses: Schema) -> Iterator[str]:
    errors = []
    for status, response in sorted(responses.items()):
        if status.startswith("2"):
            yield from _success(status, response)
        else:
            errors.append(status)
    if errors:
        yield f"Errors: {', '.join(errors)}; see [errors](#errors)."


def _errors(document: Schema) -> str:
    """Every error that some route may answer, once: those of DeepL's routes read differently."""
    found: dict[tuple[str, bool], tuple[str, str]] = {}
    for path, _, operation in _operations(document):
        for status, response in operation["responses"].items():
            example = response.get("content", {}).get("application/json", {}).get("example", {})
            if not status.startswith("2") and example:
                shown = f"`{example['code']}`: {example['error']}" if "code" in example else example.get("message", "")
                found.setdefault((status, path.startswith(_DEEPL)), (response["description"], shown))
    parts = ["## Errors"]
    for deepl in (False, True):
        rows = [
            f"| {status} | {_cell(meaning)} | {_cell(shown)} |"
            for (status, of_deepl), (meaning, shown) in sorted(found.items())
            if of_deepl is deepl
        ]
        where = "Of DeepL's routes" if deepl else "Of all routes but DeepL's; `code` may be another one of that status"
        parts.append("\n".join([f"{where}:", "", "| status | meaning | example |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _success(status: str, response: Schema) -> Iterator[str]:
    for kind, content in response.get("content", {}).items():
        schema = content.get("schema", {})
        what = _type(schema) if kind == "application/json" and schema else ""
        yield f"{status}, `{kind}`" + (f": {what}" if what else "") + "."
        examples = content.get("examples") or ({"": {"value": content["example"]}} if "example" in content else {})
        for example in examples.values():
            value = example["value"]
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"```{'json' if kind == 'application/json' else ''}\n{text.strip()}\n```"
    if not response.get("content"):
        yield f"{status}: {response['description']}"


def _objects(document: Schema) -> str:
    parts = ["## Objects"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        if schema.get("properties") and not _is_body(name):
            parts += [f"### {name}", *([schema["description"].strip()] if "description" in schema else [])]
            parts.append(_table(schema))
    return "\n\n".join(parts)


def _is_body(name: str) -> bool:
    """Whether an object is only what a route reads, whose fields stand with the route."""
    return name.endswith(("Request", FORM)) or name.startswith("Body_")


def _table(schema: Schema) -> str:
    needed = set(schema.get("required", ()))
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in sorted(schema["properties"].items(), key=lambda item: item[0] not in needed):
        default = "required" if name in needed else _default(field)
        rows.append(f"| `{name}` | {_type(field)} | {default} | {_meaning(field.get('description', ''), field)} |")
    return "\n".join(rows)


def _resolved(document: Schema, schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _meaning(description: str, schema: Schema) -> str:
    bounds = list(_bounds(schema))
    text = " ".join(_lines(description))
    return _cell(f"{text} ({', '.join(bounds)})" if bounds else text).strip()


_WORDS = {
    "minimum": "at least {}", "exclusiveMinimum": "more than {}", "maximum": "at most {}",
    "exclusiveMaximum": "less than {}", "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "minItems": "at least {} items", "maxItems": "at most {} items", "maxProperties": "at most {} entries",
}  # fmt: skip


def _bounds(schema: Schema) -> Iterator[str]:
    for kind in (schema, *schema.get("anyOf", ())):
        for name, words in _WORDS.items():
            if name in kind and kind.get("type") != "null":
                bound = words.format(kind[name] if kind[name] != int(kind[name]) else int(kind[name]))
                yield bound.removesuffix("s") if kind[name] == 1 else bound


def _type(schema: Schema) -> str:
    """What a value is, in words, with links to objects."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"object of name → {_type(values)}" if isinstance(values, dict) else "object"
    plain = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "string"}
    return plain.get(schema.get("type", ""), "anything")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()] or [""]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _anchor(title: str) -> str:
    """The fragment that a heading gets where Markdown is shown on the web."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _shell(command: str) -> str:
    return f"```sh\n{command}\n```"
