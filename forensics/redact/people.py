r"""Who: users' names and mail addresses. In: nothing; out: RULES, and the names that are nobody's. Samples:

/home/alice/train.py   C:\Users\Alice Smith\x   /scratch/alice/ckpt      paths
USER=alice   uid=1001(alice)   UserId=alice(1001)                        what systems print
alice@gpu-17:~/run$    ssh alice@gpu-17                                  prompts and commands
"""

from __future__ import annotations

import re

from forensics.redact.rule import Rule

#: users that images and clouds come with
_NOBODY = frozenset(
    "ubuntu user users runner root app conda jovyan nobody shared ec2-user azureuser vscode admin guest default public debian centos "
    "opc dev developer ray sglang vllm nvidia slurm git docker coder me".split()
)
#: folders that lie beside users' folders
_FOLDERS = frozenset(
    """models model data dataset datasets tmp temp checkpoints checkpoint ckpts ckpt cache caches users user project projects home homes logs
    log hf huggingface hub containers container images envs env venv apps app software sw src code repos build results output outputs runs
    experiments jobs slurm ray work workspace weights tokenizer train eval test bin lib opt local common group groups team teams scratch
    snapshots archive backup conda miniconda3 anaconda3 python vllm sglang pytorch torch megatron nemo spack modules deepspeed""".split()
)
#: names that are ordinary words of logs: replaced in paths, but not wherever the word stands
ORDINARY = (
    _NOBODY | _FOLDERS | frozenset("cuda nccl gpu rank node host main worker server engine scheduler kernel error start step".split())
)

#: a separator of paths: plain, escaped in JSON or in Python, escaped in an address
_SEP = r"(?:/|\\{1,4}/?|%2[fF])"
#: a name in a path; letters beyond ASCII also as `ascii()` writes them
_NAME = r"(\w(?:[\w.-]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}){0,63})"
_NAME_FIRST = _NAME.replace(r"(\w", r"((?:\w|\\x[0-9a-f]{2}|\\u[0-9a-f]{4})")
_LOGIN = r"([A-Za-z_][\w.-]{0,31})"


def _is_nobody(match: re.Match[str]) -> bool:
    name = match[match.lastindex or 0]
    return name.lower() in _NOBODY or name.isdigit()


def _is_folder(match: re.Match[str]) -> bool:
    name = match[match.lastindex or 0].lower()
    return _is_nobody(match) or name in _FOLDERS or bool(re.search(r"\.\w{1,5}$", name)) or not name[0].isalpha()


RULES: tuple[Rule, ...] = (
    Rule("user", re.compile(rf"(?i)[A-Z]:{_SEP}+Users{_SEP}+([^\\/:*?\"<>|\r\n%']{{1,64}})(?={_SEP})"), ("users",), _is_nobody),
    Rule("user", re.compile(rf"(?:(?<=/)|(?<=\\)|(?<=%2[fF])|(?<=^))(?:(?:usr|export|var|nfs|net)?home\d?|Users){_SEP}+{_NAME_FIRST}"), ("home", "users"), _is_nobody),
    Rule("user", re.compile(rf"{_SEP}users{_SEP}+{_NAME}"), ("users",), _is_folder),
    Rule("user", re.compile(rf"(?<![\w.-])/(?:scratch\d?|nobackup|nethome|u|fsx|netscratch|lscratch){_SEP}+{_NAME}(?={_SEP})"), ("scratch", "nobackup", "nethome", "/u", "/fsx"), _is_folder),
    Rule("user", re.compile(r"(?<![\w~/.-])~([A-Za-z_][\w-]{1,31})(?=/)"), ("~",), _is_nobody),
    Rule("user", re.compile(r"/(?:torchinductor|tmux|pymp|vscode)[_-]([A-Za-z][\w-]{1,31})"), ("torchinductor_",), _is_nobody),
    Rule("user", re.compile(rf"\b(?:[A-Z_]{{0,30}}USER|LOGNAME|USERNAME|USER_?NAME)[\"']?\s{{0,2}}[:=]\s{{0,2}}[\"']?{_LOGIN}"), ("user", "logname"), _is_nobody),
    Rule("user", re.compile(rf"(?i)(?<![\w-])(?:user_?name|login_?name|logname|submitted by|job owner)[\"']?\s{{0,2}}[:=]?\s{{1,3}}[\"']?{_LOGIN}"), ("name", "submitted", "owner"), _is_nobody),
    Rule("user", re.compile(rf"\b(?:UserId|GroupId|User|Account)[=:]\s?{_LOGIN}(?=\(\d)"), ("userid", "groupid", "user", "account"), _is_nobody),
    Rule("user", re.compile(r"\b(?:[ef]?uid|[ef]?gid|groups)=\d{1,10}\(([A-Za-z_][\w.-]{0,31})\)"), ("id=", "groups="), _is_nobody),
    Rule("user", re.compile(r"(?i)\blogged in as:?\s{1,3}(?:user\s)?([A-Za-z][\w.-]{1,39})"), ("logged in as",)),
    Rule("user", re.compile(r"\blogged in as:?\s{1,3}[\w.-]{1,40} \(([A-Za-z][\w.-]{1,39})\)"), ("logged in as",)),
    Rule("user", re.compile(r"(?m)(?:^|(?<=[\s\[(]))([a-z_][\w.-]{0,31})(?=@[A-Za-z][\w-]{0,62}(?::| )[^\n$#>]{0,200}[$#>](?:\s|$))"), ("@",), _is_nobody),
    Rule("user", re.compile(r"\b(?:ssh|scp|rsync|pdsh|sftp)\s(?:-\S+\s+(?:[^\s-]\S{0,80}\s+)?){0,6}([A-Za-z_][\w.-]{0,31})(?=@[\w.-]{1,100})"), ("ssh", "scp", "rsync"), _is_nobody),
    Rule("e-mail", re.compile(r"(?<![\w.+/-])((?!git@)[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})(?![\w-]*[@])"), ("@",)),
)  # fmt: skip
