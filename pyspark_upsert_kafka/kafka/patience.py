"""How long a broker is waited for, whichever client is used."""

from __future__ import annotations

MESSAGE_S = 120.0
"""For the next message of a range (the default of Spark's ``kafkaConsumer.pollTimeoutMs``)."""

LOOK_S = 5.0
"""For a message, before a look whether there is still any to come."""

REPORT_S = 1.0
"""For the report of a delivery, before a look whether there is any hope of one."""
