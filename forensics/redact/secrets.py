r"""Secrets. In: nothing; out: RULES. Samples:

hf_AbCdEfGh…          a token that says what it is; sources: the issuers' documentation of their formats
api_key='s3cr3t'      a name that says what its value is
https://bob:pw@host   a login in an address
"""

from __future__ import annotations

import re

from forensics.redact.rule import Rule, before

_STARTS = r"""hf_|api_org_|gh[opsur]_|github_pat_|gl[a-z]{2,6}-|sk-|(?:sk|rk)_(?:live|test)_|nvapi-|AKIA|ASIA|AKID|LTAI|AIza|ya29\.
    |GOCSPX-|xox[abeposr]-|xapp-|eyJ|pypi-|npm_|dckr_pat_|r8_|gsk_|lsv2_|tvly-|hv[sbr]\.|do[opr]_v1_|xai-|pplx-|fw_|dapi|SG\.
    |AGE-SECRET-KEY-|wandb_v1_"""
TOKENS = re.compile(
    r"""\b(
      (?:hf_|api_org_)[A-Za-z0-9]{20,64} | gh[opsur]_[A-Za-z0-9]{30,80} | github_pat_\w{30,100} | gl[a-z]{2,6}-[\w-]{18,60}
    | sk-(?:proj-|ant-|svcacct-|None-)?[\w-]{20,200} | sk-[\w-]{2,20}\*{3,60}[\w-]{0,20} | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,120}
    | nvapi-[\w-]{20,100} | (?:AKIA|ASIA|AROA)[A-Z0-9]{16} | AKID[A-Za-z0-9]{32} | LTAI[A-Za-z0-9]{12,30} | AIza[\w-]{35}
    | ya29\.[\w-]{20,300} | GOCSPX-[\w-]{20,60} | xox[abeposr]-[\w-]{10,200} | xapp-[\w-]{20,200}
    | eyJ[\w-]{8,2000}\.[\w-]{2,4000}\.[\w-]{8,1000} | pypi-[\w-]{50,300} | npm_[A-Za-z0-9]{36} | dckr_pat_[\w-]{20,60}
    | r8_[A-Za-z0-9]{30,50} | gsk_[A-Za-z0-9]{30,80} | lsv2_\w{20,80} | tvly-[\w-]{20,60} | hv[sbr]\.[\w-]{20,300}
    | do[opr]_v1_[0-9a-f]{64} | dapi[0-9a-f]{32} | (?:xai|pplx)-[A-Za-z0-9]{30,120} | fw_[A-Za-z0-9]{20,40}
    | SG\.[\w-]{16,32}\.[\w-]{16,64} | AGE-SECRET-KEY-1[A-Z0-9]{30,80} | wandb_v1_\w{20,120} | \d{8,10}:AA[\w-]{32,34}
    )(?![A-Za-z0-9])""",
    re.X,
)
#: the beginning of such a token, which shortening cut off behind it
CUT_TOKEN = re.compile(rf"\b((?:{_STARTS})[\w.-]{{4,400}})(?=\s?…)", re.X)

_KEY_BLOCK = re.compile(
    r"""(-----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY(?:\ BLOCK)?-----
      (?: (?:[\s\\nr"'+A-Za-z0-9/=:,.|-]{0,20000}?) -----END\ [A-Z ]{0,30}PRIVATE\ KEY(?:\ BLOCK)?-----
        | (?:[\s\\nr|"'+,]{0,12}[A-Za-z0-9+/]{16,}={0,2}…?){0,2000} (?:[\s\\nr|"'+,]{0,12}[A-Za-z0-9+/]{1,64}={0,2}(?=["'…]|\s*\Z))? ))""",
    re.X,
)
#: a line of such a key that stands alone
_KEY_LINE = re.compile(r"(?m)^[\s|>]{0,8}([A-Za-z0-9+/]{60,76}={0,2})$")

_STRONG = r"""(?:api[_-]?keys?|secret(?:[_-]?access)?(?:[_-]?keys?)?|pass(?:word|wd|phrase|code)|credentials?|connection[_-]?string
    |(?:private|access|master|account|signing|encryption|shared|subscription|service|auth|client|license|storage|deploy|wandb|hub|admin)
      [_-]?keys?(?:[_-]?id)?
    |(?:hf|api|access|auth|bearer|refresh|session|id|bot|hub|github|gh|gitlab|slack|wandb|security|user|admin|login|oauth|private
      |personal|registry|cluster|huggingface(?:hub)?)[_-]?token|jwt|sharedaccess(?:key|signature))"""
_QUOTE = r"""(?P<q>\\{0,3}["'])(?P<quoted>(?:(?!(?P=q))[^\n]){1,2000})"""
_ARGUMENT = re.compile(
    rf"""(?ix)
    (?: (?<![A-Za-z0-9])(?:--)?(?:[\w.-]{{0,40}}?[_.-])?{_STRONG} | [_-]pass | [_-]pat | [A-Za-z]{{2,20}}(?:password|passwd) )
    (?:\\{{0,3}}["'])? \s{{0,3}}(?:=>|[:=])\s{{0,3}}
    (?: {_QUOTE} | (?P<many>\[[^\]\n]{{3,2000}}\]) | (?P<bare>(?:Bearer\s+|Basic\s+)?[^\s"',;)}}\]&\\]{{3,2000}}(?:,[^\s"',;=)}}\]&\\]{{4,400}}(?![=\w]))?) )"""
)
_OPTION = re.compile(
    rf"""(?ix) (?<!\S) (?:--?(?:[\w.-]{{0,40}}?[_.-])?(?:{_STRONG}|token)) \s{{1,3}} (?: {_QUOTE} | (?P<bare>[^\s"'\[({{<-][^\s"']{{3,2000}}) )"""
)
_TOKEN = re.compile(
    rf"""(?x) (?<![A-Za-z0-9]) (?:--|[A-Za-z][\w.]{{0,40}}_)?(?:token|TOKEN|Token) (?:\\{{0,3}}["'])? \s{{0,3}}[:=]\s{{0,3}}
    (?: {_QUOTE} | (?P<bare>[^\s"',;)}}\]&\\]{{8,2000}}) )"""
)
_QUERY = re.compile(
    r"""(?ix) (?:[?&;]|\b)(?:x-(?:amz|goog|oss)-(?:signature|credential|security-token)|awsaccesskeyid|ossaccesskeyid|googleaccessid
      |(?<=[?&;])(?:sig|signature|token|access_token|key|apikey|auth|secret|password|code)) = ([^\s&"'<>\#…]{4,2000})"""
)
_AUTHORIZATION = re.compile(
    r"""(?i)\b(?:proxy-)?authorization\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?(?:(?:Bearer|Basic|Token|Digest|AWS4-HMAC-SHA256)\s{1,3})?([^\s"',\\][^"'\n\\]{4,2000})"""
)
_COOKIE = re.compile(r"""(?i)\b(?:set-)?cookie\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?([\w.-]{1,60}=[^"'\n\\]{4,4000})""")

#: a word that stands where a value would
_NO_SECRETS = frozenset(
    "none null true false yes no empty unset set required missing invalid wrong expected given provided optional default str bool redacted".split()
)
_CODE = re.compile(
    r"(?:self|cls|os|args?|config|cfg|kwargs|settings|env|environ|options?|opts|conf|params?|server_args|request)[.\[(]|[A-Za-z_][\w.]{0,80}[(\[]|torch\.|[$%]?[{<]"
)
_METAVAR = re.compile(r"[A-Z][A-Z_]+|[a-z]+(?:_[a-z]+)*\]?")


def _is_measure(value: str) -> bool:
    """`token: 4096`, `token=0.01,`, `token/s`: numbers and units are no secrets."""
    return bool(re.fullmatch(r"[\d.,:%/]+[A-Za-z/%]{0,6}\W?", value)) or not re.search(r"\w", value)


def _is_word(match: re.Match[str]) -> bool:
    """Whether the value is one that no secret has: None, a number, code that fetches it, or prose after a colon."""
    value = match[match.lastindex or 0]
    if value.strip("\"'[]").lower() in _NO_SECRETS or (_is_measure(value) and not (match["q"] and len(value) > 5)) or value.startswith("<"):
        return True
    if match["q"]:
        return False
    return bool(_CODE.match(value)) or (before(match, 2)[-2:] in (": ", ":\t") and value.isalpha())


def _is_no_option(match: re.Match[str]) -> bool:
    """A name of a value in a usage text, or prose that goes on behind the name of an option."""
    return _is_word(match) or (
        not match["q"] and match["bare"].lower() in ("api_key", "key", "token", "is", "to", "and", "or", "must", "was", "was not")
    )


def _is_no_token(match: re.Match[str]) -> bool:
    """`token` names words of a model as well: a secret is long and of letters and digits."""
    value = match[match.lastindex or 0]
    if _is_word(match) or " " in value or "|" in value or ("/" in value and "." in value):
        return True
    return not ((len(value) >= 8 and re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)) or len(value) >= 24)


def _is_plain(match: re.Match[str]) -> bool:
    """Digits only, or hexadecimal only where a base64 line of a key is meant."""
    return match[match.lastindex or 0].isdigit() or bool(re.fullmatch(r"[0-9a-f]+|[0-9A-F]+|([A-Za-z])\1*|[A-Za-z/]+|[a-z0-9]+", match[1]))


def _is_ids(match: re.Match[str]) -> bool:
    """`docker run -u 1000:1000`."""
    return match[1].replace(":", "").isdigit() or match[1].startswith("<")


RULES: tuple[Rule, ...] = (
    Rule("secret", _KEY_BLOCK, ("private key",)),
    Rule("secret", _KEY_LINE, (), _is_plain),
    Rule("secret", TOKENS),
    Rule("secret", _AUTHORIZATION, ("authorization",)),
    Rule("secret", _COOKIE, ("cookie",)),
    Rule("secret", _QUERY, ("=",), lambda match: match[1].isdigit()),
    Rule("secret", _ARGUMENT, ("key", "pass", "pat", "secret", "cred", "token", "jwt", "string", "sharedaccess"), _is_word),
    Rule("secret", _OPTION, ("key", "pass", "secret", "cred", "token", "jwt"), _is_no_option),
    Rule("secret", _TOKEN, ("token",), _is_no_token),
    Rule("secret", re.compile(r"\bBearer\s{1,3}([\w.~+/=-]{16,2000})"), ("bearer",)),
    Rule("secret", re.compile(r"(?<=://)((?!git@)[^\s/@\"'<>|]{0,100}:?[^\s/@\"'<>|]{1,300})(?=@)"), ("@",)),
    Rule("secret", re.compile(r"(?i)(?<!\S)(?:-u|--user|--proxy-user)[ =][\"']?([A-Za-z][^\s:\"']{0,60}:[^\s\"'/]{3,200})"), ("-u",), _is_ids),
    Rule("secret", re.compile(r"(?i)\blogin\b[^\n]{0,200}?\s(?:-p|--password(?!-)|--token|--key|--relogin)[ =][\"']?([^\s\"'-][^\s\"']{5,400})"), ("login",)),
    Rule("secret", re.compile(r"(?i)wandb[^\n]{0,60}?(?:key|login|api)[^\n]{0,60}?\b([0-9a-f]{40})\b"), ("wandb",)),
    Rule("secret", re.compile(r"hooks\.slack\.com/(?:services|workflows)/([\w/-]{10,120})"), ("hooks.slack",)),
    Rule("secret", re.compile(r"discord(?:app)?\.com/api/webhooks/([\w/-]{10,200})"), ("webhooks",)),
    Rule("secret", re.compile(r"(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/([\w-]{10,60})"), ("/hook/",)),
    Rule("secret", re.compile(r"qyapi\.weixin\.qq\.com/\S{0,60}[?&]key=([\w-]{10,60})"), ("weixin",)),
    Rule("account", re.compile(r"\bAccountName=([\w-]{3,60})"), ("accountname",)),
)  # fmt: skip
