"""The changes that are copied, and the rules for the copies in the end."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from tools.kills.copy import SOURCE
from tools.kills.killer import KillsError
from tools.local_topics import producer
from tools.proof.java_reader import Message

KEYS = 997

Changes = dict[int, list[int]]
"""For each key the numbers of its changes, in their order."""


def produce(servers: str, start: int, count: int) -> Changes:
    """Sends changes of random keys, numbered from ``start``."""
    sender = producer(servers)
    sent: Changes = defaultdict(list)
    for n in range(start, start + count):
        key = random.randrange(KEYS)
        sender.produce(SOURCE, key=f'{{"id":{key}}}', value=f'{{"id":{key},"n":{n}}}')
        sent[key].append(n)
        sender.poll(0)
    if sender.flush(60):
        raise KillsError("the changes could not be sent")
    return sent


def by_key(messages: Iterable[Message]) -> Changes:
    """The changes that messages of a topic hold, by key in their order."""
    found: Changes = defaultdict(list)
    for message in messages:
        value = re.fullmatch(rb'\{"id":(\d+),"n":(\d+)\}', message.value or b"")
        if value is None:
            raise KillsError(f"a message is {message.value!r}")
        found[int(value[1])].append(int(value[2]))
    return found


def check_exact(sent: Changes, found: Changes) -> None:
    """Each change is there once, and those of a key in their order."""
    for key in sent.keys() | found.keys():
        wanted, got = sent.get(key, []), found.get(key, [])
        if wanted != got:
            lost, more = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
            raise KillsError(
                f"key {key}, exactly once: {len(lost)} changes lost, {len(more)} repeated"
                f"{'' if lost or more else ', their order is another'}; "
                f"lost {sorted(lost)[:5]}, repeated {sorted(more)[:5]}"
            )


def check_plain(sent: Changes, found: Changes) -> None:
    """No change is lost, and the last one of each key is the last."""
    for key, wanted in sent.items():
        got = found.get(key, [])
        if set(wanted) != set(got):
            raise KillsError(
                f"key {key}, at least once: {len(set(wanted) - set(got))} changes lost"
            )
        if wanted[-1] != got[-1]:
            raise KillsError(f"key {key}, at least once: {got[-1]} is the last, not {wanted[-1]}")
