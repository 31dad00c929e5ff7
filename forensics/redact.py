"""Takes out of a report what must not be handed on. In: a `View` or plain values; out: the same with stand-ins. Sample:

    Redactor().text("/home/alice/run.py on gpu-node-17.corp.internal, token=hf_AbCd…")
    -> "/home/user-1/run.py on host-1, token=<secret-1>"

The same thing gets the same stand-in everywhere, so that the story stays readable. What is found: secrets of known kinds and
`api_key=`-like arguments, users' names in paths, host names, IP and MAC addresses, e-mail addresses, buckets, credentials in URLs,
prompts and request bodies. It is a net, not a proof: read a report before you publish it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from forensics.model.verdict import Incident

T = TypeVar("T")

#: tokens that say what they are; sources: the issuers' documentation of their formats
_TOKENS = re.compile(
    r"""\b(?:
      hf_[A-Za-z0-9]{20,64} | (?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{30,80} | github_pat_\w{30,100} | glpat-[\w-]{18,40}
    | sk-(?:proj-|ant-|svcacct-)?[\w-]{20,200} | nvapi-[\w-]{20,100} | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[\w-]{35}
    | xox[abposr]-[\w-]{10,100} | eyJ[\w-]{8,2000}\.eyJ[\w-]{8,4000}\.[\w-]{8,1000} | pypi-[\w-]{50,300} | npm_[A-Za-z0-9]{36}
    | ya29\.[\w-]{20,300} | dckr_pat_[\w-]{20,60} | r8_[A-Za-z0-9]{30,50} | gsk_[A-Za-z0-9]{30,80} | lsv2_[\w]{20,80}
    )""",
    re.X,
)
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\s\S]{0,8000}?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)"
)
_ARGUMENT = re.compile(
    r"""(?ix)
    ((?:--)?\b(?:[\w.-]{0,40}[_.-])?(?:api[_-]?key|apikey|secret(?:[_-]?access)?(?:[_-]?key)?|password|passwd|passphrase|access[_-]?token|auth[_-]?token|token
       |credential|(?:private|access|master|account|signing|encryption)[_-]?key|(?<=_)pat)
       ["']?\s{0,3}(?:[:=]|=>|\s)\s{0,3}["']?)
    ((?:Bearer\s+|Basic\s+)?[^\s"',;)}\]]{6,400})"""
)
_AUTHORIZATION = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:Bearer|Basic|Token)?\s{0,3})([^\s\"',]{6,2000})"
)
_BEARER = re.compile(r"\b(Bearer\s{1,3})([\w.~+/=-]{16,2000})")
_URL_LOGIN = re.compile(r"(?<=://)([^\s/:@]{1,100}:[^\s/@]{1,200})(?=@)")
_HOME = re.compile(
    r"((?:/home|/Users|/usr/home|/export/home|/nfs/home|/data/home|/scratch/users|[A-Za-z]:\\+Users)[/\\]+)([A-Za-z0-9_][\w.-]{0,63})"
)
_EMAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\b")
_BUCKET = re.compile(r"\b((?:s3a?|gs|az|abfss?|oss|cos|r2|wasbs?)://)([^\s/\"',]{2,120})([^\s\"',)]{0,400})")
_MAC = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){2,7}(?::?[0-9a-fA-F]{1,4}){1,7}(?![\w:.])|(?<![\w:.])fe80::[0-9a-fA-F:]{2,40}"
)
_VERSION = re.compile(r"(?i)(?:version|cudnn|driver|release|[=<>~v])[\s:=\"']{0,3}$")
_FQDN = re.compile(
    r"\b[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9-]{1,63}){0,4}\.(?:internal|local|lan|corp|intra|intranet|cluster|localdomain)\b",
    re.I,
)
_LIKE_HOST = re.compile(r"[\d-]|\.(?:internal|lan|corp|intra|intranet|localdomain)$", re.I)
_NCCL_HOST = re.compile(r"(?m)(?:^|(?<=\s))([A-Za-z][\w.-]{1,62}):\d{1,7}:\d{1,7} (?=\[)")
_HOST_FIELD = re.compile(
    r"(?i)\b((?:host|hostname|nodelist|node_?name)\s{0,12}[:=]\s{0,3}[\"']?)([A-Za-z][\w.-]{1,80})"
)
_AWS_HOST = re.compile(r"\bip-\d{1,3}(?:-\d{1,3}){3}\b")
_PROMPT = re.compile(
    r"""(?x)
    (["']?\b(?:prompt|prompts|content|input_text|generated_text|messages|text)\b["']?\s{0,2}[:=]\s{0,2})
    ('(?:[^'\\]|\\.){12,}(?:'|\Z) | "(?:[^"\\]|\\.){12,}(?:"|\Z))"""
)
_TOKEN_IDS = re.compile(
    r"(\b(?:input_ids|prompt_token_ids|output_ids|token_ids)[\"']?\s{0,2}[:=]\s{0,2})(\[[\d,\s]{8,}\]?)"
)

#: the beginning of such a token, which shortening cut off behind it
_CUT_TOKEN = re.compile(
    r"\b(?:hf_|gh[opsur]_|github_pat_|glpat-|sk-|nvapi-|AKIA|ASIA|AIza|xox[abposr]-|eyJ|pypi-|npm_|ya29\.|dckr_pat_|r8_|gsk_|lsv2_)"
    r"[\w.-]{4,400}(?=\s?…)"
)
_MARK = re.compile(r"\s?…\s?")
#: so much of a secret is told apart from a word that only happens to begin or end alike
_TELLING = 5
_MOST_SECRETS = 500

_NOBODY = frozenset(
    {
        "ubuntu",
        "user",
        "runner",
        "root",
        "app",
        "conda",
        "jovyan",
        "nobody",
        "shared",
        "ec2-user",
        "azureuser",
        "vscode",
    }
)
_NOWHERE = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "255.255.255.255", "none", "null", "auto", "default"})


class Redactor:
    """Stand-ins that stay the same over a whole report. counts: kind -> how many different things were replaced."""

    def __init__(self, incident: Incident | None = None) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self.counts: Counter[str] = Counter()
        self._names: re.Pattern[str] | None = None
        self._secrets: dict[str, str] = {}
        self._first_walk = False
        self._library = _detect_secrets()
        if incident is not None:
            self._learn(incident)

    def text(self, text: str) -> str:
        """One string with everything replaced that is found in it."""
        if len(text) < 3:
            return text
        text = _KEY_BLOCK.sub(lambda m: self._stand_in("secret", m[0]), text)
        text = _TOKENS.sub(lambda m: self._stand_in("secret", m[0]), text)
        text = _AUTHORIZATION.sub(lambda m: m[1] + self._stand_in("secret", m[2]), text)
        text = _ARGUMENT.sub(self._argument, text)
        text = _BEARER.sub(lambda m: m[1] + self._stand_in("secret", m[2]), text)
        text = _URL_LOGIN.sub(lambda m: self._stand_in("secret", m[0]), text)
        for found in self._library(text):
            text = text.replace(found, self._stand_in("secret", found))
        text = _PROMPT.sub(lambda m: f"{m[1]}<{self._counted('prompt', m[2])}: {len(m[2]) - 2:,} characters>", text)
        text = _TOKEN_IDS.sub(
            lambda m: f"{m[1]}<{self._counted('prompt', m[2])}: {m[2].count(',') + 1:,} token ids>", text
        )
        text = _EMAIL.sub(lambda m: self._stand_in("e-mail", m[0]), text)
        text = _BUCKET.sub(lambda m: m[1] + self._stand_in("bucket", m[2]) + ("/…" if len(m[3]) > 1 else m[3]), text)
        text = _HOME.sub(lambda m: m[1] + (m[2] if m[2].lower() in _NOBODY else self._stand_in("user", m[2])), text)
        text = _MAC.sub(lambda m: self._stand_in("mac", m[0]), text)
        text = _IPV4.sub(self._address, text)
        text = _IPV6.sub(self._address, text)
        text = _NCCL_HOST.sub(lambda m: m[0].replace(m[1], self._host(m[1]), 1), text)
        text = _HOST_FIELD.sub(lambda m: m[1] + self._host(m[2]), text)
        text = _FQDN.sub(lambda m: self._host(m[0]) if _LIKE_HOST.search(m[0]) else m[0], text)
        text = _AWS_HOST.sub(lambda m: self._host(m[0]), text)
        if self._secrets:
            text = self._secrets_again(text)
        if "…" in text and not self._first_walk:
            text = _CUT_TOKEN.sub(lambda m: self._stand_in("secret", m[0]), text)
        return self._again(text)

    def value(self, value: T) -> T:
        """A record, tuple, list or dict of strings, all the way down; twice, so that a name learnt late is missing nowhere."""
        self._first_walk = True
        self._walk(value)
        self._first_walk = False
        return self._walk(value)  # type: ignore[no-any-return]

    def summary(self) -> str:
        """ "2 users, 1 host, 1 secret replaced", or "nothing was replaced"."""
        told = [f"{number} {kind}{'s' if number != 1 else ''}" for kind, number in sorted(self.counts.items())]
        return (", ".join(told) or "nothing") + (" replaced" if told else " was replaced")

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple | list):
            return type(value)(self._walk(one) for one in value)
        if isinstance(value, dict):
            return {key: self._walk(one) for key, one in value.items()}
        if hasattr(type(value), "__match_args__"):
            return type(value)(*(self._walk(getattr(value, name)) for name in type(value).__match_args__))
        return value

    def _learn(self, incident: Incident) -> None:
        """Hosts that the analysis knows by name, whatever they look like, and secrets that a table shows apart from their name."""
        for row in incident.ranks:
            if row.rank.node:
                self._host(row.rank.node)
        for setting in incident.facts.settings:
            if setting.value:
                _ARGUMENT.sub(self._argument, f"{setting.name}={setting.value}")

    def _stand_in(self, kind: str, found: str) -> str:
        key = (kind, found)
        if key not in self._known:
            self.counts[kind] += 1
            name = f"{kind}-{self.counts[kind]}"
            self._known[key] = f"<{name}>" if kind == "secret" else name
            if kind in ("user", "host") and len(found) > 3:
                self._names = None
            if kind == "secret" and len(found) > _TELLING and len(self._secrets) < _MOST_SECRETS:
                self._secrets[found] = self._known[key]
        return self._known[key]

    def _counted(self, kind: str, found: str) -> str:
        if (kind, found) not in self._known:
            self.counts[kind] += 1
            self._known[kind, found] = kind
        return kind

    def _argument(self, match: re.Match[str]) -> str:
        value = match[2]
        plain = value.lower() in ("none", "null", "true", "false") or value.startswith(("<secret-", "<prompt"))
        spaced = match[1][-1:].isspace() and "=" not in match[1] and ":" not in match[1]
        if (
            plain
            or (spaced and (not match[1].lstrip().startswith("-") or not re.search(r"\d", value)))
            or _is_measure(value)
        ):
            return match[0]
        return match[1] + self._stand_in("secret", value)

    def _host(self, name: str) -> str:
        low = name.lower()
        if low in _NOWHERE or re.fullmatch(r"host-\d+|ip-\d+|user-\d+", low) or len(name) < 3:
            return name
        return self._stand_in("host", name)

    def _address(self, match: re.Match[str]) -> str:
        import ipaddress

        text = match[0]
        if text in _NOWHERE or _VERSION.search(text_before(match)):
            return text
        try:
            if ipaddress.ip_address(text).is_loopback:
                return text
        except ValueError:
            return text
        return self._stand_in("ip", text)

    def _secrets_again(self, text: str) -> str:
        """Secrets found elsewhere: whole, or cut by the shortening of a text ("AKIAIOSFO…", "supers … et123")."""
        for secret, name in self._secrets.items():
            if secret in text:
                text = text.replace(secret, name)
        for mark in list(_MARK.finditer(text))[:20][::-1]:
            before, after = text[: mark.start()], text[mark.end() :]
            for secret, name in self._secrets.items():
                start = next((n for n in range(len(secret) - 1, _TELLING - 1, -1) if before.endswith(secret[:n])), 0)
                end = next((n for n in range(len(secret) - 1, _TELLING - 1, -1) if after.startswith(secret[-n:])), 0)
                before = before[: len(before) - start] + name if start else before
                after = name + after[end:] if end else after
            text = before + mark[0] + after
        return text

    def _again(self, text: str) -> str:
        """Names found elsewhere, as whole words: `alice` after `/home/alice`."""
        names = {
            found: name for (kind, found), name in self._known.items() if kind in ("user", "host") and len(found) > 3
        }
        if not names:
            return text
        if self._names is None:
            longest_first = sorted(names, key=len, reverse=True)[:2000]
            self._names = re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![\w-])")
        return self._names.sub(lambda m: names.get(m[0], m[0]), text)


def text_before(match: re.Match[str]) -> str:
    """The 16 characters before a match."""
    return match.string[max(0, match.start() - 16) : match.start()]


def _is_measure(value: str) -> bool:
    """`token: 4096`, `token=0.01,`, `token/s`: numbers and units are no secrets."""
    return bool(re.fullmatch(r"[\d.,:%/]+[A-Za-z/%]{0,6}\W?", value)) or not re.search(r"[A-Za-z0-9]", value)


def _detect_secrets() -> Callable[[str], Iterable[str]]:
    """The detectors of the detect-secrets library where it is installed; those that know a format, not those that guess."""
    import sys
    from types import ModuleType

    # its plugins import an HTTP client, to ask issuers whether a secret is alive: nothing here may ask anybody
    clients = [name for name in ("requests", "requests.exceptions") if name not in sys.modules]
    for name in clients:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name])["__getattr__"] = lambda _: object  # for their annotations
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

        known: dict[str, Any] = get_mapping_from_secret_type_to_class()
    except (ImportError, AttributeError):
        return lambda text: ()
    finally:
        for name in clients:
            sys.modules.pop(name, None)
    guesses = ("Base64 High Entropy String", "Hex High Entropy String", "Secret Keyword", "Public IP (ipv4)")
    plugins = [made() for kind, made in known.items() if kind not in guesses]

    def found(text: str) -> Iterable[str]:
        return [secret for plugin in plugins for secret in plugin.analyze_string(text[:20_000]) if len(secret) >= 8]

    return found
