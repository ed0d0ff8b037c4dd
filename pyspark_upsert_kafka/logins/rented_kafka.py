"""Whose Kafka the names of brokers belong to: Amazon's, Microsoft's or Google's."""

from __future__ import annotations

import re

_MSK = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?![\w.-])")
_EVENT_HUBS = re.compile(
    r"(?:^|[,/\s])([\w-]+\.servicebus\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn))(?![\w.-])",
    re.IGNORECASE,
)
_GOOGLE = re.compile(r"\.managedkafka\.[\w.-]+\.cloud\.goog(?![\w.-])", re.IGNORECASE)


def msk_region(servers: str) -> str | None:
    """The region of Amazon MSK, of any partition of AWS; None = they are no brokers of it.

    >>> msk_region("b-1.demo.abc123.c2.kafka.cn-north-1.amazonaws.com.cn:9098")
    'cn-north-1'
    """
    found = _MSK.search(servers)
    return found and found[1]


def event_hubs_host(servers: str) -> str | None:
    """The name of a namespace of Azure Event Hubs; None = it is none.

    >>> event_hubs_host("shop.servicebus.windows.net:9093")
    'shop.servicebus.windows.net'
    """
    found = _EVENT_HUBS.search(servers)
    return found and found[1]


def is_google(servers: str) -> bool:
    """Whether they are brokers of Google's Managed Service for Apache Kafka.

    >>> is_google("bootstrap.orders.europe-west1.managedkafka.my-project.cloud.goog:9092")
    True
    """
    return _GOOGLE.search(servers) is not None


def described(servers: str) -> str | None:
    """Whose brokers they are, and what is different there; None = nobody's of these.

    >>> described("bootstrap.orders.europe-west1.managedkafka.my-project.cloud.goog:9092")
    "Google's Managed Service for Apache Kafka"
    """
    if region := msk_region(servers):
        return f"Amazon MSK in {region}"
    if host := event_hubs_host(servers):
        return (
            f"the namespace {host} of Azure Event Hubs, where a topic can be compacted in each tier but Basic, and exactly "
            "once needs the tier Premium or Dedicated"
        )
    return "Google's Managed Service for Apache Kafka" if is_google(servers) else None
