"""Sample data of a web site, and what its tables must be: people view pages, move to another region, leave and come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

REGIONS = {
    "Africa": 11,
    "Asia": 30,
    "Europe": 22,
    "North America": 19,
    "Oceania": 4,
    "South America": 14,
}
"""Each region and its share of the users, in percent."""

_WAVE = 25_000
"""Page views in a wave, about; there are at least three waves and at most twelve."""

_NAMES = ("Ada", "Alan", "Barbara", "Dennis", "Donald", "Edsger", "Frances", "Grace", "Ken", "Margaret")  # fmt: skip
_OPENING = datetime(2026, 1, 1, 8)  # noqa: DTZ001 - view_time is a TIMESTAMP_NTZ
_VIEWS_PER_USER = 60
_CHANGING = 0.05  # of the users, in a wave
_LEAVING = 0.3  # of those who change something


class PageView(NamedTuple):
    """A message of topic ``page_views``."""

    view_id: int
    user_id: int
    page_id: int
    view_time: datetime
    user_region: str


class UserChange(NamedTuple):
    """A change of the table ``users``."""

    user_id: int
    user_name: str | None
    user_region: str | None
    kind: str


class Wave(NamedTuple):
    """Data that arrives together; no user changes twice in it, so its changes need no order."""

    changes: list[UserChange]
    views: list[PageView]


def generate_waves(messages: int, seed: int = 2026) -> Iterator[Wave]:
    """The waves of a run with about this number of page views; equal arguments give equal data."""
    random = Random(seed)  # noqa: S311 - a game, not a secret
    users = range(1, max(10, messages // _VIEWS_PER_USER) + 1)
    regions: dict[int, str] = {}
    views, count = 0, min(12, max(3, messages // _WAVE))
    for number in range(count):
        changing = (
            users if number == 0 else random.sample(users, max(1, int(len(users) * _CHANGING)))
        )
        changes = [_change(user, regions, random) for user in changing]
        present = list(regions)
        seen = [
            _view(view, random.choice(present), regions, random)
            for view in range(views, views + messages // count)
        ]
        views += len(seen)
        yield Wave(changes, seen)


def _change(user: int, regions: dict[int, str], random: Random) -> UserChange:
    """An existing user moves or leaves; another one arrives."""
    if user in regions and random.random() < _LEAVING:
        del regions[user]
        return UserChange(user, None, None, "delete")
    others = [region for region in REGIONS if region != regions.get(user)]
    (regions[user],) = random.choices(others, [REGIONS[region] for region in others])
    return UserChange(user, _NAMES[user % len(_NAMES)], regions[user], "upsert")


def _view(view: int, user: int, regions: dict[int, str], random: Random) -> PageView:
    return PageView(
        view,
        user,
        random.randrange(1, 200),
        _OPENING + timedelta(milliseconds=7 * view),
        regions[user],
    )


def expected_counts(views: Iterable[PageView]) -> dict[str, tuple[int, int]]:
    """Region -> PV and UV."""
    pv: Counter[str] = Counter()
    users: dict[str, set[int]] = {}
    for view in views:
        pv[view.user_region] += 1
        users.setdefault(view.user_region, set()).add(view.user_id)
    return {region: (pv[region], len(users[region])) for region in pv}


def expected_users(changes: Iterable[UserChange]) -> dict[int, tuple[str | None, str | None]]:
    """User -> name and region, of those who have not left."""
    last = {change.user_id: change for change in changes}
    return {
        user: (change.user_name, change.user_region)
        for user, change in last.items()
        if change.kind != "delete"
    }


def user_with_most_changes(changes: Iterable[UserChange]) -> int:
    """The user with the most changes among those who left once, if any did."""
    history: dict[int, list[str]] = {}
    for change in changes:
        history.setdefault(change.user_id, []).append(change.kind)
    return max(history, key=lambda user: ("delete" in history[user], len(history[user])))


def over_batches(changes: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Lines of equal length: a batch changes a region once, so a region seen again starts the next batch.

    >>> over_batches([("Asia", 3), ("Europe", 1), ("Asia", 5), ("Asia", 9), ("Europe", 4)])
    {'Asia': [3, 5, 9], 'Europe': [1, 1, 4]}
    """
    batches: list[dict[str, int]] = [{}]
    for region, pv in changes:
        if region in batches[-1]:
            batches.append({})
        batches[-1][region] = pv
    lines: dict[str, list[int]] = {region: [] for region in sorted({r for b in batches for r in b})}
    for batch in batches:
        for region, line in lines.items():
            line.append(batch.get(region, line[-1] if line else 0))
    return lines
