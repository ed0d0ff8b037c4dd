"""Which of the libraries that call themselves ``kafka`` is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from pyspark_upsert_kafka.core.errors import OptionError

try:
    import kafka
except ImportError:
    raise OptionError(
        "Option 'kafka.client' = 'kafka-python' needs a package that is not installed: "
        "pip install 'pyspark-upsert-kafka[kafka-python]'"
    ) from None

_CHOICE = (
    "'kafka.client' = 'kafka-python' works with kafka-python 3 and with kafka-python-ng 2.2: "
    "pip install --force-reinstall 'kafka-python>=3', or set 'kafka.client' to 'librdkafka'."
)


def is_kafka_python_3(found: str, ng: str | None) -> bool:
    """Whether this is kafka-python 3, which has transactions, rather than kafka-python-ng.

    Args:
        found: The version that the imported package states.
        ng: The version of the distribution kafka-python-ng; None = not installed.

    Raises:
        OptionError: It is neither: what others return for aborted messages and transaction markers
            is not known.
    """
    if found.startswith("3."):
        return True
    if found == ng and found.startswith("2.2."):
        return False
    raise OptionError(f"The installed package 'kafka' has version {found}. {_CHOICE}")


def _version_of_ng() -> str | None:
    try:
        return version("kafka-python-ng")
    except PackageNotFoundError:
        return None


# One library uninstalled takes the files of the other with it, and leaves a package without a version.
IS_KAFKA_PYTHON_3 = is_kafka_python_3(getattr(kafka, "__version__", "unknown"), _version_of_ng())
"""Whether it is kafka-python 3, which has read_committed and idempotence; kafka-python-ng has neither."""


def needs_kafka_python_3(what: str, remedy: str) -> OptionError:
    """The error for what kafka-python-ng cannot do."""
    return OptionError(
        f"'kafka.client' = 'kafka-python': the installed kafka-python-ng {what}. Install its "
        f"successor (pip uninstall kafka-python-ng; pip install 'kafka-python>=3'), set 'kafka.client' "
        f"to 'librdkafka', or {remedy}."
    )


def no_read_committed() -> OptionError:
    """The error for a reader that must not see aborted messages."""
    return needs_kafka_python_3(
        "cannot tell the messages of aborted transactions from others",
        "accept them with 'properties.isolation.level' = 'read_uncommitted'",
    )
