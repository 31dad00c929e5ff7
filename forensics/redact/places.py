r"""Where: hosts, addresses and buckets. In: nothing; out: RULES. Samples:

    gpu-17:88121:88204 [0] NCCL INFO …   srun: error: node[01-04]: task 3   Nov 29 10:00:00 gpu-17 kernel: …
    tcp://10.4.0.17:29500   [2001:db8::1]:29500   0c:42:a1:5e:00:11
    s3://corp-models/llama   https://corp-models.s3.amazonaws.com/llama   arn:aws:s3:::corp-models/llama

A version has four numbers too (cuDNN 9.1.0.70, cuBLAS 12.8.4.1): an address needs a private range or a context that says so.
"""

from __future__ import annotations

import re

from forensics.redact.rule import Rule, before

_NOWHERE = frozenset("localhost 127.0.0.1 0.0.0.0 ::1 :: 255.255.255.255 none null auto default static self true false unknown any".split())
#: domains that everybody names
_PUBLIC = re.compile(
    r"(?i)(?:^|\.)(?:github|githubusercontent|pytorch|huggingface|nvidia|python|pypi|docker|nvcr|readthedocs|google|googleapis|amazonaws"
    r"|openai|anthropic|wandb|microsoft|ubuntu|debian|kernel|apache|gnu|llvm|triton-lang|sglang|vllm|modelscope|arxiv|wikipedia|quay|ghcr"
    r"|schema|w3|pythonhosted|intel|amd|ray|tensorflow)\.[a-z]{2,6}$"
)
_FILE = re.compile(
    r"(?i)\.(?:py|pyx|pyc|c|cc|cpp|cxx|cu|cuh|h|hpp|inl|ipp|rs|go|so|log|txt|json|ya?ml|toml|ts|js|java|rb|sh|md|mm|pt|pth|bin|cfg|ini|conf|gz|db)$"
)
_LEVELS = frozenset("info warn warning error debug critical fatal trace notice stdout stderr log level".split())
#: ranks and devices that are named like machines
_RANKISH = re.compile(
    r"(?i)(?:rank|tp|pp|dp|ep|cp|cuda|stage|pid|thread|local|world|layer|step)[_-]?\d*|(?:gpu|device|node|worker|proc|process|task|version)[_-]?\d?"
)

_HOST = r"([A-Za-z][A-Za-z0-9.-]{0,62}[A-Za-z0-9])"
#: Slurm's way to name many: gpu-[17-18,20],login1
_HOSTS = (
    r"([A-Za-z][A-Za-z0-9.-]{0,62}(?:\[[\d,-]{1,200}\])?[A-Za-z0-9.-]{0,30}(?:,[A-Za-z][A-Za-z0-9.-]{0,62}(?:\[[\d,-]{1,200}\])?){0,60})"
)
_SYSLOG = r"(?m)^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"


def _is_nowhere(match: re.Match[str]) -> bool:
    name = match[match.lastindex or 0].strip(".").lower()
    return (
        name in _NOWHERE or name in _LEVELS or len(name) < 3 or bool(_RANKISH.fullmatch(name) or _FILE.search(name) or _PUBLIC.search(name))
    )


def _is_no_machine(match: re.Match[str]) -> bool:
    """Where the context is weak the name has to look like a machine's: with a digit or a domain."""
    name = match[match.lastindex or 0]
    return _is_nowhere(match) or not re.search(r"\d|\.", name)


def _is_public(match: re.Match[str]) -> bool:
    name = match[1]
    ending = name.rpartition(".")[2].lower()
    if ending in ("internal", "local", "lan", "corp", "intra", "intranet", "cluster", "localdomain"):
        return not re.search(r"[\d-]|\.(?:internal|lan|corp|intra|intranet|localdomain)$", name, re.I)
    return _is_nowhere(match)


_VERSIONED = re.compile(
    r"""(?ix)(?: \b(?:lib)?(?:cuda\w*|cudnn|cu(?:blas|fft|rand|solver|sparse|tensor|pti|file|dss)\w*|nccl|rccl|nvrtc|nvjitlink|npp|tensorrt\S*|trt\S*|driver
      |version|ver|release|rev|torch\w*|triton|python|rocm|hip\w*|miopen|build|package|firmware|fw|vbios|cu1\d|ofed|ucx|openmpi|glibc|gcc)[\s:=v\"'(]{0,4}
      | [=<>~!]=\s? | \bv | \.so\. | [A-Za-z]\w*[-_] )$"""
)
_ADDRESSED = re.compile(
    r"(?ix)(?: :// | @ | \[ | \b(?:ip|ips|addr|addrs|address|host|hosts|hostname|node|from|to|peer|client|server|remote|listen|bind|bound|endpoint|inet6?|ping|via|gateway|on|at)\b[\"']?[\s:=(\"'\[]{0,4} )$"
)


def _is_no_address(match: re.Match[str]) -> bool:
    import ipaddress

    text = match[1]
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return True
    if ip.is_loopback or ip.is_unspecified or text in _NOWHERE:
        return True
    told = before(match)
    if ip.version == 6:
        groups = [group for group in text.split(":") if group]
        return len(groups) < 3 and not re.match(r"(?i)[23][0-9a-f]{3}:|f[cde][0-9a-f]{2}:", text)
    if _ADDRESSED.search(told):
        return False
    if _VERSIONED.search(told):
        return True
    behind = match.string[match.end() : match.end() + 8]
    if ip.is_private or int(text.partition(".")[0]) >= 30 or re.match(r":\d{2,5}\b|<\d|/\d{1,2}\b| - - ", behind):
        return False
    return not any(int(part) >= 100 for part in text.split("."))


#: before users and hosts: a bucket's address is a host's name, too
BUCKETS: tuple[Rule, ...] = (
    Rule("bucket", re.compile(r"\b(?:s3[an]?|gs|gcs|az|abfss?|adl|oss|cosn?|obs|tos|bos|r2|b2|wasbs?|hdfs|viewfs|minio|swift|dbfs|lakefs|ceph|j(?:uice)?fs|azureml)://([^\s/\"',)\]]{2,160})"), ("://",)),
    Rule("bucket", re.compile(r"(?i)https?://([\w.-]{2,80})(?=\.(?:s3|oss|cos|obs|blob|dfs|file|r2|storage)(?:[.-][\w-]{1,30}){0,3}\.(?:amazonaws|aliyuncs|myqcloud|myhuaweicloud|windows|cloudflarestorage|googleapis)\.)"), ("://",)),
    Rule("bucket", re.compile(r"(?i)https?://(?:s3[\w.-]{0,40}\.amazonaws\.com|storage\.(?:cloud\.google|googleapis)\.com)/([^\s\"',)?/]{2,200})"), ("://s3", "://storage")),
    Rule("account", re.compile(r"\barn:aws[\w-]{0,12}:[\w-]{0,30}:[\w-]{0,30}:(\d{12})(?=:)"), ("arn:",)),
    Rule("bucket", re.compile(r"\barn:aws[\w-]{0,12}:s3:[\w-]{0,30}:[\w-]{0,30}:([^\s\"',)/]{2,200})"), ("arn:",)),
    Rule("path", re.compile(r"(?:://|/|:)bucket-\d+(?:\.[\w.-]{5,120})?/([^\s\"',)…][^\s\"',)]{0,400})"), ("/",)),
    Rule("account", re.compile(r"\b(\d{12})(?=\.dkr\.ecr\.)"), (".dkr.ecr.",)),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    Rule("mac", re.compile(r"(?<![0-9A-Fa-f:-])((?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2})(?![0-9A-Fa-f:-])")),
    Rule("mac", re.compile(r"(?i)\bguid\b[\"']?[\s:=(]{1,4}((?:0x)?[0-9a-f]{16}|[0-9a-f]{4}(?::[0-9a-f]{4}){3})\b"), ("guid",)),
    Rule("ip", re.compile(r"(?<![\w.])((?:\d{1,3}\.){3}\d{1,3})(?![\w.]*\w)"), ("1", "2", "3", "4", "5", "6", "7", "8", "9"), _is_no_address),
    Rule("ip", re.compile(r"(?<![\w:.])((?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f]{0,4}(?:(?<=:)(?:\d{1,3}\.){3}\d{1,3})?)(?![\w:.]*[\w:])"), ("::", ":"), _is_no_address),
    Rule("host", re.compile(rf"(?m)(?:^|(?<=\s)){_HOST}:\d{{1,7}}:\d{{1,7}} (?=\[)"), (": ", ":"), _is_nowhere),
    Rule("host", re.compile(rf"\[{_HOST}:\d{{2,7}}(?::\d+:\d+\]|\](?= (?:\*\*\*|\[\s?\d|Signal|PMIX|PRTE|ORTE|Failing|MCA|mca|pml|btl|coll|UCX|\d+ more|mpirun|End )))"), ("]",), _is_nowhere),
    Rule("host", re.compile(rf"\b(?:srun|slurmstepd|sbatch|salloc|mpirun|prterun): error: (?:Node failure on )?{_HOSTS}(?=: |$| )(?<!Node)(?<!Unable)"), ("error: ",), _is_no_machine),
    Rule("host", re.compile(rf"\*\*\* (?:JOB|STEP|STEPS|JOBS) \S{{1,40}} ON {_HOSTS} "), ("*** ",), _is_nowhere),
    Rule("host", re.compile(rf"{_SYSLOG}) {_HOST} (?=[\w./()@-]{{1,60}}(?:\[\d+\])?: )"), (":",), _is_nowhere),
    Rule("host", re.compile(rf"(?m)^(?:<\d{{1,3}}>\d? ?)?\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d) {_HOST} (?=kernel: |[\w./()@-]{{1,60}}\[\d+\]: )"), ("t",), _is_nowhere),
    Rule("host", re.compile(rf"\bLinux {_HOST} (?=\d+\.\d+)"), ("linux ",), _is_nowhere),
    Rule("host", re.compile(rf"(?i)(?<![\w-])[\w-]{{0,30}}(?:host|host_?name|node_?list|node_?name|master_addr|head_node|pod_?name|server_addr|coordinator_address|init_addr|rdzv[_-]endpoint|node_?ip|exec_host)[\"']?\s{{0,12}}[:=]\s{{0,3}}[\"']?(?:\w{{2,8}}://)?{_HOSTS}"), ("host", "node", "addr", "pod", "endpoint"), _is_nowhere),
    Rule("host", re.compile(rf"(?i)(?:--(?:host|master[_-]addr|dist-init-addr|rdzv[_-]endpoint|head-node-ip|nodelist|host-?list)|(?<=\s)-w|(?<=\s)-H)[ =][\"']?(?:\w{{2,8}}://)?{_HOSTS}"), ("--", "-w", "-h"), _is_no_machine),
    Rule("host", re.compile(rf"(?i)\b(?:on|from|to|of|at|via|with)\s(?:the\s)?(?:remote\s|local\s)?(?:host|node|machine|server|peer)s?:?\s[\"'\[]?{_HOSTS}(?=[\"'\],;:.)]?(?:\s|$|:\d|[\"',;)]))"), ("host", "node", "machine", "server", "peer"), _is_no_machine),
    Rule("host", re.compile(rf"\b(?:[Rr]unning|started|connect(?:ing|ed)?|listening) (?:on|to) [\"'\[(]?{_HOST}(?=[\"'\])]?(?::\d{{2,5}}|, \d{{4,5}}\)|\.?\s|\.?$))"), (" on ", " to "), _is_no_machine),
    Rule("host", re.compile(rf"(?i)\bhostname {_HOST}(?=\s|$)"), ("hostname ",), _is_no_machine),
    Rule("host", re.compile(r"\b([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9-]{1,63}){0,4}\.(?:internal|local|lan|corp|intra|intranet|cluster|localdomain))\b", re.I), (".",), _is_public),
    Rule("host", re.compile(r"(?i)(?<![\w./@-])([a-z0-9](?:[a-z0-9-]{0,61})(?:\.[a-z0-9-]{1,63}){1,4}\.(?:com|net|org|edu|gov|mil|cloud|dev|[a-z]{2}))(?=\]?:\d{2,5}\b)"), (":",), _is_public),
    Rule("host", re.compile(r"(?i)(?<=://)([a-z0-9](?:[a-z0-9-]{0,61})(?:\.[a-z0-9-]{1,63}){0,4}\.(?:com|net|org|edu|gov|mil|cloud|dev|[a-z]{2}))(?=:\d{2,5}\b)"), ("://",), _is_public),
    Rule("host", re.compile(r"(?<=@)([A-Za-z][A-Za-z0-9-]{1,62}(?:\.[\w-]{1,63}){0,4})(?=(?::| )[^\n$#>]{0,200}[$#>](?:\s|$))"), ("user-", "@"), _is_nowhere),
    Rule("host", re.compile(r"(?<=user-\d@)([\w.-]{2,100})"), ("@",), _is_nowhere),
    Rule("host", re.compile(r"(?i)(?<![\w-])((?:dgx|hgx|nid|gpu-?node|compute-?node)[a-z0-9]{0,12}(?:-[a-z0-9]{1,12}){0,4}(?<=\d\d))(?![\w-])"), ("dgx", "hgx", "nid", "node"), _is_nowhere),
    Rule("host", re.compile(r"\b(ip-\d{1,3}(?:-\d{1,3}){3})\b"), ("ip-",)),
    Rule("host", re.compile(r"\b((?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{6,12})\b"), ("desktop-", "laptop-", "win-")),
    Rule("user", re.compile(r"(?<=host-\d\\)([A-Za-z][\w.-]{1,31})"), ("\\",)),
)  # fmt: skip
