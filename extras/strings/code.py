"""Lines that are evidently code: SQL, commands, statements. No model translates them: they come back byte for byte.

Code in a text is marked as code by most who write it, in backticks or in a ``<pre>``. Where nobody did, a line has to
be code by its own signs from its beginning to its end: of 18,000 sentences of news, help and conversation none is taken
for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tandem.service.text.spans import Span

_LONGEST = 300  # characters of a line that is looked at
_NAME = r"[A-Za-z_$][\w$]*+(?:(?:\.|::|->)[A-Za-z_$][\w$]*+)*+"
_TAKING_COMMANDS = (  # their second word says what they do
    r"(?:git\s+(?:add|blame|branch|checkout|cherry-pick|clone|commit|config|diff|fetch|init|log|merge|mv|pull|push|rebase"
    r"|remote|reset|restore|revert|rm|show|stash|status|submodule|switch|tag|worktree)"
    r"|(?:npm|pnpm|yarn|pip3?|pipx|uv|conda|brew|cargo|gem|composer|apt|apt-get|dnf|yum|dotnet)\s+(?:add|build|ci|config"
    r"|create|get|init|install|i|list|mod|publish|remove|run|search|start|test|uninstall|update|upgrade)"
    r"|(?:docker|podman|kubectl|helm|terraform|systemctl|docker-compose|docker\s+compose)\s+(?:apply|attach|build|compose"
    r"|create|delete|describe|disable|down|enable|exec|get|images|init|install|logs|plan|ps|pull|push|reload|restart|rm|run"
    r"|start|status|stop|tag|up|upgrade))"
)
_PLAIN_COMMANDS = (
    r"(?:cat|cd|chmod|chown|cp|curl|echo|export|find|grep|head|kill|less|ln|ls|make|mkdir|mount|mv|node|npx|perl|php|ping"
    r"|python3?|rm|rsync|ruby|scp|sed|service|source|ssh|tail|tar|touch|unzip|vim?|wget|zip)"
)
_SHELL = r"(?:(?:\$|[\w.-]+@[\w.-]+:[^\s$\#]*[$\#])\s+)"
_PROMPT = rf"(?:{_SHELL}|\#\s+)"  # this one begins other lines, too
# Words that commands take: each ends where the word does, so that there is one way to read a line.
_FIRST = (
    r"(?>--?[A-Za-z][\w-]*(?:=\S*|\s+[\w.:@-]+)?(?!\S)|--?[A-Za-z][\w-]*(?!\S)|\+\w+(?!\S)|\S+/\S*|/\S+"
    r"|\S*\.\w{1,5}(?!\S)|[A-Za-z]+=\S+|\$\w\S*|\.{1,2}(?!\S))"
)
_ARGUMENT = rf"(?>{_FIRST}|[\"'][^\"'\n]*[\"'](?!\S)|(?:[|<>]|&&)(?!\S))"
_WORD = r"[\w@:.-]+(?!\S)"
_CODE = re.compile(
    rf"""
    # a command, behind a prompt or not
    {_PROMPT}?(?:sudo\s+)?
    (?: {_TAKING_COMMANDS}(?:\s+{_WORD})*?\s+{_ARGUMENT}(?:\s+(?:{_ARGUMENT}|{_WORD}))*+
      | {_TAKING_COMMANDS}(?:\s+origin)?(?:\s+[\w-]+)?
      | {_PLAIN_COMMANDS}\s+{_FIRST}(?:\s+(?:{_ARGUMENT}|{_WORD}))*+
    )(?<!\w[.,:;!?])
  | {_SHELL}(?:sudo\s+)?(?:{_TAKING_COMMANDS}|{_PLAIN_COMMANDS})(?:\s+\S+)*+(?<!\w[.,:;!?])
    # SQL
  | (?=[^a-z]*[a-z*=;(])
    (?: SELECT\s.{{1,400}}?\sFROM\s.+ | INSERT\s+INTO\s.+ | UPDATE\s+\S+\s+SET\s.+ | DELETE\s+FROM\s.+
      | (?:CREATE|ALTER|DROP|TRUNCATE)\s+(?:OR\s+REPLACE\s+|UNIQUE\s+|TEMPORARY\s+)?
        (?:TABLE|INDEX|VIEW|DATABASE|SCHEMA|USER|ROLE|FUNCTION|TRIGGER|SEQUENCE)\s.+
      | (?:GRANT|REVOKE)\s.+\sON\s.+ | (?:LEFT|RIGHT|INNER|OUTER|CROSS)?\s*JOIN\s.+\sON\s.+ )
  | (?:select\s+[\w.*,()\s]{{1,300}}\s+from\s+\S+(?=.*[;=*])|insert\s+into\s+\S+\s*\(|update\s+\S+\s+set\s+\S+\s*=
      |delete\s+from\s+\S+\s+where\s+\S+\s*[=<>]).*
    # blocks and definitions
  | (?:\}}\s*)?(?:if|for|foreach|while|switch|catch|else\s+if|elseif)\s*\(.*\)\s*(?:\{{|\{{.*\}}|;)
  | (?:if|for|foreach|while)\s*\([^()]*(?:[=<>!&|;]|\b(?:of|in)\b).*\)\s*[^\s{{].*;
  | (?:\}}\s*)?(?:else|try|finally|do)\s*\{{(?:.*[;}}])?
  | (?:async\s+)?(?:def|fn|func|function\*?)\s+[\w.]*\s*\(.*\).*[:{{}};]
  | (?:if|elif|while|for|with|except)\s.*(?:==|!=|<=|>=|\(\)|\bin\b\s+{_NAME}\().*:
  | (?:async\s+)?with\s+\S+\(.*\)(?:\s+as\s+\w+)?:
  | (?:(?:export|public|private|protected|static|final|abstract|default)\s+)*
    (?:class|interface|enum|struct|namespace)\s+\w+(?:\s*[(<:].*|\s+(?:extends|implements)\s.*|\s*)[{{:]
  | (?:public|private|protected|static|final|abstract|override|virtual|async)\s+.*\w\(.*\)\s*(?:throws\s.*)?[{{;].*
  | (?:export\s+)?(?:const|let|var|auto|int|long|float|double|char|bool|boolean|string|String)(?:\[\])?\s+[*&]?
    (?:\w+(?:,\s*\w+)*|[{{\[].*[}}\]])\s*(?::\s*[\w<>\[\]]+\s*)?=
    (?!=)\s*(?:.*;|\S+|["'`][^"'`]*["'`]|[\[({{].*)
  | (?:import|use|package|require|include)\s+\w+(?:(?:\.|::|\\|/)[\w*]+)+\s*; | using\s+[\w.]+;
  | import\s+\w+(?:\.\w+)*\s+as\s+\w+ | import\s+\w+(?:\.\w+)+ | from\s+[a-z_.][\w.]*\s+import\s+[\w.*,()\s]+
  | import\s+[\w{{}},*\s]+\s+from\s+["'][^"']+["'];?
  | \#\s*(?:include\s*[<"].+[>"]|define\s+[A-Z_]\w*.*|ifn?def\s+\w+|pragma\s.+)
    # statements
  | {_NAME}(?:\[[^\]]*\])*\s*(?:[-+*/%|&^]|<<|>>|:|\?\?|\|\|)?=(?![=>]).*;
  | (?:return|throw|yield)\s+(?:[\w.]+|.*[()=+*"'\[\]].*); | (?:return|break|continue);
  | (?:await\s+|new\s+)?{_NAME}(?:<[\w,\s]*>)?\((?:\)|.*["'\[{{=].*\)|.*\)(?=;))(?:\.\w+\(.*\))?;?
    # what programs print
  | at\s+{_NAME}\([\w.]*(?::\d+)*\) | File\s"[^"]+",\sline\s\d+(?:,\sin\s\S+)?
  | Traceback\s\(most\srecent\scall\slast\):
  | [.\#]?[\w-]+(?:\s+[.\#>]?[\w-]+)*\s*\{{\s*[a-z-]+\s*:[^;{{}}]+(?:;\s*[a-z-]+\s*:[^;{{}}]+)*;?\s*\}}
  | (?:export\s+)?[A-Z][A-Z\d]*(?:_[A-Z\d]+)*=(?:\S*|"[^"]*"|'[^']*')
    """,
    re.VERBOSE,
)
# Most lines have none of these, and looking closely takes many times as long.
_SIGNS = re.compile(r"[;={}(]")
_BEGINS = re.compile(
    rf"\s*(?:{_PROMPT}|sudo\s|{_TAKING_COMMANDS}|{_PLAIN_COMMANDS}\s|[A-Z]{{4,8}}\s|from\s|import\s|File\s|Trace|\#\s*[dip]\w+\s)"
)


def find_code(text: str) -> Iterator[Span]:
    """The lines of a text that are code, without the white space around them, in order."""
    start = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip() if _SIGNS.search(line) or _BEGINS.match(line) else ""
        if 0 < len(bare) <= _LONGEST and _CODE.fullmatch(bare):
            first = start + line.index(bare)
            yield Span(first, first + len(bare))
        start += len(line)
