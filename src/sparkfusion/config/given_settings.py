"""The sources of settings, in order. A later source wins.

1. defaults, 2. `sparkfusion.toml`, 3. environment variables, 4. `spark.sparkfusion.*` of the SparkSession,
5. `connect(config=…)`, 6. `SET` and `session.config`. This module reads 2 to 4.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sparkfusion.config.config_file import FILE_VARIABLE, ConfigFile
from sparkfusion.config.setting_list import PREFIX, SETTINGS
from sparkfusion.errors import UnknownSettingError

DEFAULT = "default"
CONNECT = "connect"
SET = "SET"
SPARK_PREFIX = f"spark.{PREFIX}"
VARIABLE_PREFIX = "SPARKFUSION_"
TOKEN_VARIABLE = "SPARKFUSION_TOKEN"
_OTHER_VARIABLES = {FILE_VARIABLE, TOKEN_VARIABLE}
# Kubernetes sets such variables in every container for each service, also for a service called sparkfusion.
_OF_KUBERNETES = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_log = logging.getLogger("sparkfusion")


@dataclass(frozen=True)
class GivenSetting:
    """A value of a setting from one of the sources. `source` describes the source, for messages."""

    name: str
    value: object
    source: str


def variable_of(name: str) -> str:
    """The environment variable of one of our settings.

    >>> variable_of("sparkfusion.store_dir")
    'SPARKFUSION_STORE_DIR'
    """
    return VARIABLE_PREFIX + name.removeprefix(PREFIX).upper()


def read_below_spark(file: ConfigFile | None, environment: Mapping[str, str]) -> list[GivenSetting]:
    """The settings of the file and of the environment, in order."""
    of_file = [] if file is None else [GivenSetting(*item, source=str(file.path)) for item in file.settings.items()]
    return [*of_file, *_read_variables(environment)]


def _read_variables(environment: Mapping[str, str]) -> Iterator[GivenSetting]:
    """The settings of environment variables. A misspelt variable is an error. An unknown one that resembles none of
    ours may be for another program, so it is only logged."""
    known = {variable_of(setting.name): setting.name for setting in SETTINGS}
    for variable in sorted(environment):
        if variable in known:
            yield GivenSetting(known[variable], environment[variable], variable)
            continue
        near = nearest_variable(variable)
        if near is not None:
            raise UnknownSettingError(
                f"the environment variable {variable} is not a setting", hint=f"did you mean {near}?"
            )
        if is_unknown_variable(variable):
            _warn_of(variable)


@cache
def _warn_of(variable: str) -> None:
    """Log an unknown variable, once for each process."""
    _log.warning("the environment variable %s is not a setting of sparkfusion, and is not used", variable)


def is_unknown_variable(variable: str) -> bool:
    """Whether a variable has our prefix, and neither belongs to sparkfusion nor comes from Kubernetes."""
    if not variable.startswith(VARIABLE_PREFIX):
        return False
    ours = {variable_of(setting.name) for setting in SETTINGS} | _OTHER_VARIABLES
    return variable not in ours and _OF_KUBERNETES.fullmatch(variable) is None


def nearest_variable(variable: str) -> str | None:
    """The variable that was probably meant; None if this is a known variable, or resembles none.

    >>> nearest_variable("SPARKFUSION_SLOT"), nearest_variable("SPARKFUSION_SLOTS"), nearest_variable("PATH")
    ('SPARKFUSION_SLOTS', None, None)
    """
    if not is_unknown_variable(variable):
        return None
    ours = [variable_of(setting.name) for setting in SETTINGS] + sorted(_OTHER_VARIABLES)
    short = {name.removeprefix(VARIABLE_PREFIX): name for name in ours}
    near = difflib.get_close_matches(variable.removeprefix(VARIABLE_PREFIX), short, n=1, cutoff=0.8)
    return short[near[0]] if near else None


def read_spark(configuration: Mapping[str, str]) -> list[GivenSetting]:
    """The settings of `spark.sparkfusion.*` in Spark's configuration. The session checks the names."""
    return [
        GivenSetting(name.removeprefix("spark."), value, name)
        for name, value in sorted(configuration.items())
        if name.startswith(SPARK_PREFIX)
    ]
