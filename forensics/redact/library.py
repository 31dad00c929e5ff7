"""The detectors of the detect-secrets library where it is installed; those that know a format, not those that guess. In: nothing; out: a
function from text to the secrets in it. Sample:

    detectors()("square: sq0atp-…") -> ["sq0atp-…"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def detectors() -> Callable[[str], Iterable[str]]:
    """What finds them; nothing is found without the library."""
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
