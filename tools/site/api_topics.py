"""The public names, by what they are for: a page of the API each."""

from __future__ import annotations

from dataclasses import dataclass

from tools.site.contents import Group, Page

GROUP = "Python API"
FOLDER = "api"
BEFORE_IT = "Reference"
"""The group of pages after which those of the API stand."""

ALIASES = {"DefaultSource": "UpsertKafkaDataSource"}
"""Names that are on no page: Spark's own names for what has another one."""


@dataclass(frozen=True)
class Topic:
    """A page of the API.

    Args:
        title: Its heading.
        file: Its file on the site, without the folder.
        summary: What it is about, in one line.
        names: What is on it, in this order.
    """

    title: str
    file: str
    summary: str
    names: tuple[str, ...]

    @property
    def page(self) -> Page:
        """Its place on the site. It has no file in the repository."""
        path = f"{FOLDER}/{self.file}"
        return Page(self.title, path, path, self.summary)


TOPICS = (
    Topic(
        "Read a table",
        "reading.md",
        "the format of spark.read and spark.readStream, and tables without Spark",
        ("UpsertKafkaDataSource", "read_table", "watermark_of"),
    ),
    Topic(
        "Write",
        "writing.md",
        "functions for foreachBatch: into a topic, and into a table of Iceberg or Delta Lake",
        ("upsert_sink", "merge_sink"),
    ),
    Topic(
        "Changes as rows",
        "changes.md",
        "rows before and after each change, and the last change of each key",
        ("normalize_changelog", "last_changes"),
    ),
    Topic("Flink SQL", "sql.md", "scripts of Flink SQL", ("run_sql",)),
    Topic(
        "Watch queries",
        "monitoring.md",
        "lag, rows and bad messages, and why a query has ended",
        ("ProgressListener", "why_it_ended"),
    ),
    Topic(
        "Kafka for tests",
        "testing.md",
        "a real Kafka on this machine, with users, certificates and ACLs",
        ("LocalKafka", "LocalSecurity", "LocalAcl", "LocalCertificates"),
    ),
    Topic(
        "Errors",
        "errors.md",
        "what is raised, and the fields of each error",
        (
            "UpsertKafkaError",
            "OptionError",
            "SchemaError",
            "DecodeError",
            "EncodeError",
            "DeliveryError",
            "RetriableDeliveryError",
            "DataLossError",
            "CheckpointError",
            "BrokerError",
            "RetriableBrokerError",
            "UnknownTopicError",
        ),
    ),
)


def with_api(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups of pages, with the API in its place; at the end, if no group of that name is there."""
    api = Group(GROUP, tuple(topic.page for topic in TOPICS))
    titles = [group.title for group in groups]
    place = titles.index(BEFORE_IT) + 1 if BEFORE_IT in titles else len(groups)
    return (*groups[:place], api, *groups[place:])
