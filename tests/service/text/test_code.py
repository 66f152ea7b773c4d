"""Lines that are evidently code come back byte for byte, and nothing that people say is taken for it."""

from __future__ import annotations

import pytest

from tandem.models.bundle import Bundle
from tandem.service.text.code import find_code
from tandem.service.text.spans import Span
from tests.service.support import served

CODE = (
    "$ make install",
    "anna@server:~$ cat notes",
    "SELECT * FROM users WHERE id = 5;",
    "select name, id from users where id = 5;",
    "INSERT INTO t (a, b) VALUES (1, 'x');",
    "UPDATE users SET name = 'Anna' WHERE id = 3",
    "DELETE FROM orders WHERE total < 10;",
    "CREATE TABLE users (id INT PRIMARY KEY, name TEXT);",
    "ALTER TABLE users ADD COLUMN age INT;",
    "SELECT name FROM users",
    'git commit -m "x"',
    "git push origin main",
    "git clone https://github.com/a/b.git",
    "git status",
    "git checkout -b neuer-zweig",
    "npm install --save react",
    "npm install",
    "npm run build",
    "pip install tandem",
    "sudo apt-get install -y python3",
    "docker run -it --rm ubuntu bash",
    "docker compose up -d",
    "kubectl get pods -n default",
    "cd /tmp/ordner",
    "ls -la",
    "rm -rf build/",
    "curl -X POST http://localhost:8000/translate -d q=Hallo",
    "$ python3 -m venv .venv",
    "anna@server:~$ ls -la",
    "mkdir -p a/b",
    "chmod +x run.sh",
    "python manage.py runserver",
    "export PATH=$PATH:/usr/bin",
    "if (x == 1) { return; }",
    "if (x > 5 && y < 3) {",
    "} else {",
    "} else if (a) {",
    "for (int i = 0; i < 10; i++) {",
    "for (const a of list) console.log(a);",
    "while (true) {",
    "def main(argv):",
    "def hello(name: str) -> str:",
    "function add(a, b) { return a + b; }",
    "const x = 5;",
    'let name = "Anna";',
    "var total = 0",
    "int count = 0;",
    "x = 5;",
    'user.name = "Anna";',
    "self.items[0] += 3;",
    "return x + 1;",
    "return;",
    'print("Hallo Welt")',
    "print('Hallo')",
    'console.log("Hallo Welt");',
    'System.out.println("Hallo");',
    "foo(bar, baz);",
    "obj.method().then(x => x + 1);",
    "import os.path",
    "import numpy as np",
    "from os import path",
    "import React from 'react';",
    "import java.util.List;",
    "#include <stdio.h>",
    "#define MAX 100",
    "using System;",
    "class Haus {",
    "class Foo(Bar):",
    "public static void main(String[] args) {",
    "public int getId() { return id; }",
    "if x == 1:",
    "for i in range(10):",
    'with open("a.txt") as f:',
    "at com.example.Main.run(Main.java:25)",
    'File "app.py", line 3, in main',
    "Traceback (most recent call last):",
    ".box { color: red; margin: 0 }",
    "FOO=bar",
    "DEBUG=true",
    'throw new Error("x");',
    'new Foo("x");',
    "elif x != 3:",
)
PROSE = (
    "# make sure it works",
    "$ make 5 dollars.",
    "$ 5 kosten",
    "Select a user from the list.",
    "SELECT A FILE FROM THE LIST",
    "Datei(en)",
    "Name(s) of the user(s)",
    "if (and only if) you agree; otherwise leave",
    "git is a tool for versions.",
    "make sure that you go to the page",
    "cat and dog",
    "find the file and open it",
    "import duties and taxes",
    "return policy",
    "let us go = fun",
    "for (example) this;",
    "Go install the app",
    "update users set",
    "new rules; new chances",
    "print this page;",
    "a = b",
    "E = mc²",
    "x = 5",
    "Preis = 5 Euro; Menge = 3",
    "break a leg;",
    "while (you wait) we work.",
    "class of 2020:",
    "use the door;",
    "use Strict;",
    "new year;",
    "delete all;",
    "Return (optional);",
    "source code",
    "git push allows you to upload changes",
    "service is good",
    "echo of the past",
    "with love as always:",
    "for all in one:",
    "in case of fire: run;",
    'echo "x"',
    "Public (all)",
    "static noise (loud); and more",
    'Call(s) "missed"',
    "See Figure(1).",
    "if x is in the list(s) as said:",
    "import this",
    "from Berlin import cars",
    "cat food.",
    "head office / sales",
    "find 5 dogs",
    "kill 3 birds",
    "less 5",
    "make 5",
    "make 10 dollars",
    'find "love"',
    "ping 5",
    "tail 3",
    "touch 1",
    "source: internet",
    "Endzeit des Sitzungsblocks geändert zu {}",
    "Das Feld {name: Text} ist leer",
    "V. Müller",
    "Kategorie(n): Haus; Garten",
    "Wie geht's? (Gut!)",
    "Preis = Menge * Wert",
    "Siehe Seite 5; danach Seite 6;",
    "Ist x == y?",
    "cat sitting",
    "Make it so.",
    "Haus (alt);",
    "Datei(en) löschen",
    "Open(ed) files",
    "go get food",
    "apt to fail",
)


@pytest.mark.parametrize("line", CODE)
def test_a_line_of_code(line: str) -> None:
    assert [*find_code(line)] == [Span(0, len(line))]
    assert [*find_code(f"  {line}\t\r\nSo ist es.\n")] == [Span(2, 2 + len(line))]


@pytest.mark.parametrize("line", PROSE)
def test_what_people_say_is_no_code(line: str) -> None:
    assert not [*find_code(line)]
    assert not [*find_code(f"{line}\nUnd so weiter.")]


@pytest.mark.anyio
async def test_code_is_read_by_no_model(bundles: dict[str, Bundle]) -> None:
    text = 'wo ist der bahnhof heute?\n  SELECT  * FROM t WHERE a = "so";  \nprint("guten morgen")\n'
    async with served(bundles) as service:
        assert (await service.translate(text)).json()["translatedText"] == text
        assert service.read_texts == ["wo ist der bahnhof heute?"]
        markup = '<p>print("guten morgen")</p>'
        assert (await service.translate(markup, format="html")).json()["translatedText"] == markup
        assert service.read_texts == ["wo ist der bahnhof heute?"]
