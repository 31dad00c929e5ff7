"""Settings: what was asked for, what the engine chose, what ran. In: retained lines; out: `Setting` rows. Sample:

    server_args=ServerArgs(model_path='m', moe_runner_backend='triton', speculative_moe_runner_backend='triton')
    -> Setting("moe_runner_backend", "triton", "asked", span, "target_model", "moe_runner_backend"),
       Setting("moe_runner_backend", "triton", "asked", span, "draft_model", "speculative_moe_runner_backend"), …

A draft's setting has the target's canonical name and component "draft_model"; `spelled` is what the log wrote. Order: launch
commands, dumps, environment, then resolved and observed; the target's before the draft's.
"""

from __future__ import annotations

from forensics.ingest.intake import Intake
from forensics.knowledge.linerules import LineRule, Sightings
from forensics.knowledge.settings.commands import Command, asked, command_rules, commands
from forensics.knowledge.settings.dumps import dump_rules, dumped
from forensics.knowledge.settings.environment import environment, environment_rules
from forensics.knowledge.settings.names import canonical
from forensics.knowledge.settings.resolved import resolved, resolved_rules
from forensics.model import Setting

__all__ = ["Command", "canonical", "commands", "setting_rules", "settings", "settings_from"]


def setting_rules() -> tuple[LineRule, ...]:
    """All rows that the settings readers look for."""
    return (*command_rules(), *dump_rules(), *environment_rules(), *resolved_rules())


def settings(seen: Sightings, launched: list[Command] | None = None) -> tuple[Setting, ...]:
    """Settings of the log, one a name, component, how and value."""
    launched = commands(seen) if launched is None else launched
    found = [setting for command in launched for setting in asked(command)]
    found += [*dumped(seen), *environment(seen, launched), *resolved(seen)]
    once: dict[tuple[str, str | None, str, str | None], Setting] = {}
    for setting in found:
        once.setdefault((setting.name, setting.component, setting.how, setting.value), setting)
    return tuple(sorted(once.values(), key=lambda s: s.component == "draft_model"))


def settings_from(intake: Intake) -> tuple[Setting, ...]:
    """`settings` of an intake by itself."""
    return settings(Sightings(intake, setting_rules()))
