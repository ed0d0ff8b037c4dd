"""What sinks have written comes to the listeners that ask for it, and to nobody else."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path

import pytest

from pyspark_upsert_kafka.connector import reported_writes as written
from pyspark_upsert_kafka.connector.reported_writes import WrittenBatches, report
from pyspark_upsert_kafka.core.positions.progress import Written

RUN = "e1a8c4b0-0000-4000-8000-000000000002"
OTHER = "e1a8c4b0-0000-4000-8000-000000000003"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, a test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def files(folder: Path) -> list[Path]:
    """All files below a folder."""
    return [each for each in folder.rglob("*") if each.is_file()]


def test_without_a_listener_nothing_is_written(temporary: Path) -> None:
    """Nobody would take the files away."""
    report(RUN, 1, Written(1, 1, 10))

    assert list(temporary.iterdir()) == []


def test_the_sinks_of_a_batch_are_added_up() -> None:
    """A function of foreachBatch may call several; other batches and runs do not count."""
    batches = WrittenBatches()
    batches.open(RUN)
    batches.open(OTHER)
    for batch, part in ((1, Written(2, 1, 30)), (1, Written(1, 0, 7)), (11, Written(9, 9, 9))):
        report(RUN, batch, part)
    report(OTHER, 1, Written(5, 5, 5))

    assert batches.take(RUN, 1) == Written(3, 1, 37)
    assert batches.take(OTHER, 1) == Written(5, 5, 5)


def test_nothing_written_is_known_and_no_report_is_not() -> None:
    """0 is a number; what nobody has reported is None."""
    batches = WrittenBatches()
    assert batches.take(RUN, 1) is None
    batches.open(RUN)
    report(RUN, 1, Written())

    assert batches.take(RUN, 1) == Written(0, 0, 0)
    assert batches.take(RUN, 2) is None


def test_two_listeners_learn_the_same(temporary: Path) -> None:
    """The files of a batch are kept until both may have read them, and no longer."""
    one, other = WrittenBatches(), WrittenBatches()
    for batches in (one, other):
        batches.open(RUN)
    for batch in range(20):
        report(RUN, batch, Written(batch, 0, 1))
        assert [each.take(RUN, batch) for each in (one, other)] == [Written(batch, 0, 1)] * 2

    assert len(files(temporary)) == 1


def test_a_run_that_has_ended_leaves_nothing(temporary: Path) -> None:
    """Neither files nor its folder; a sink that is late writes none either."""
    batches = WrittenBatches()
    batches.open(RUN)
    report(RUN, 1, Written(1, 0, 1))
    batches.close(RUN)
    batches.close("never opened")
    report(RUN, 2, Written(1, 0, 1))

    assert not list(temporary.rglob(RUN))


def test_a_run_that_has_ended_is_not_kept_until_the_program_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What removes its folder then is there while it runs: a program may start queries for months."""
    waiting: list[object] = []
    monkeypatch.setattr(atexit, "register", waiting.append)
    monkeypatch.setattr(atexit, "unregister", waiting.remove)
    batches = WrittenBatches()
    batches.open(RUN)
    batches.open(RUN)
    assert len(waiting) == 1
    batches.close(RUN)

    assert waiting == []


def test_others_see_nothing(temporary: Path) -> None:
    """The folder is closed to other users, and one that another user has made is not used."""
    batches = WrittenBatches()
    batches.open(RUN)
    (folder,) = temporary.iterdir()
    (of_run,) = folder.iterdir()

    assert [each.stat().st_mode & 0o7777 for each in (folder, of_run)] == [0o700, 0o700]


def test_a_folder_of_another_user_is_not_used(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever made it could change the numbers; a warning says that they are not known."""
    monkeypatch.setattr(written, "_user", lambda: 12_345_678)
    batches = WrittenBatches()
    batches.open(RUN)
    batches.open(RUN)
    report(RUN, 1, Written(1, 0, 1))

    assert batches.take(RUN, 1) is None
    (told,) = caplog.messages
    assert "does not know what queries write" in told
    assert "belongs to another user" in told
    assert files(temporary) == []


def test_a_file_that_cannot_be_written_fails_no_batch(
    temporary: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are written; that a number is missing is a warning."""
    batches = WrittenBatches()
    batches.open(RUN)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    report(RUN, 7, Written(1, 0, 1))

    assert batches.take(RUN, 7) is None
    (told,) = caplog.messages
    assert "what batch 7 has written" in told


def test_nobody_takes_what_is_reported(temporary: Path) -> None:
    """A listener that was removed from its session is not told of it: the folder of a run that goes on does not grow."""
    batches = WrittenBatches()
    batches.open(RUN)
    for batch in range(1000):
        report(RUN, batch, Written(batch, 0, 1))

    assert len(files(temporary)) <= 101
    assert batches.take(RUN, 950) == Written(950, 0, 1)


@pytest.mark.parametrize("form", ["{}", "", "..", "an ETL job"])
def test_a_job_group_of_the_user_is_no_run(temporary: Path, form: str) -> None:
    """Whatever it is, a path too, no file is written where it points."""
    WrittenBatches().open(RUN)
    report(form.format(temporary), 1, Written(1, 0, 1))

    assert files(temporary) == []


def test_a_file_that_another_listener_was_faster_to_remove(
    temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A part of a batch is not told as the whole, and the listener does not fail."""
    batches = WrittenBatches()
    batches.open(RUN)
    report(RUN, 1, Written(1, 0, 1))
    (gone,) = temporary.rglob("1.*")
    gone.with_name("1.gone").symlink_to(temporary / "nowhere")  # listed, and not there

    assert batches.take(RUN, 1) is None
    assert "what batch 1 has written" in caplog.text
