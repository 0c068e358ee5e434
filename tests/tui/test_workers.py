"""Reads, questions and long work behind the screen: answered on its thread, stopped, survived."""

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from filestore import FilestoreError, Finding
from filestore.browse import InspectedStore
from filestore.fs.lock import writer_lock
from tui.workers import worker_process
from tui.workers.task_manager import TaskManager
from tui.workers.tasks import Handlers, Job, Opening, Task

from .processes import CHECKOUT, children, is_running, start

PATIENCE_S: Final = 90
SYNC: Final = Job(name="sync_but", arguments={"forget": ()})


class Stage:
    """A task manager whose screen is this thread, and what it was told."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.posted: queue.Queue[Callable[[], None]] = queue.Queue()
        self.told: list[Any] = []
        self.errors: list[FilestoreError] = []
        self.changes = 0
        self.threads: set[threading.Thread] = set()
        self.task_manager = TaskManager(
            Opening(root=str(root), configuration=str(root)),
            post=self.posted.put,
            failed=self.errors.append,
            changed=self._changed,
        )

    def _changed(self) -> None:
        self.changes += 1
        self.threads.add(threading.current_thread())

    def tell(self, value: Any) -> None:
        """Keep an answer, and the thread that it came on."""
        self.threads.add(threading.current_thread())
        self.told.append(value)

    def handlers(self) -> Handlers:
        """Handlers that keep what they are told."""
        return Handlers(
            then=self.tell,
            failed=self.errors.append,
            found=lambda findings: self.tell(("found", findings)),
            stopped=lambda: self.tell("stopped"),
        )

    def work(self, name: str, **arguments: Any) -> Task:
        """Have something done."""
        job = Job(name=name, arguments=arguments)
        return self.start(job)

    def start(self, job: Job) -> Task:
        """Have a job done."""
        return self.task_manager.work(job, self.handlers(), title=job.name, writes=job == SYNC)

    def ask(self, name: str, *, group: str = "", **arguments: Any) -> None:
        """Have something answered."""
        self.task_manager.ask(Job(name=name, arguments=arguments), self.handlers(), group=group)

    def until(self, reached: Callable[[], Any]) -> None:
        """Do what is posted until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < deadline, (self.told, self.errors, self.task_manager.tasks)
            try:
                self.posted.get(timeout=0.1)()
            except queue.Empty:
                continue

    def until_told(self, count: int = 1) -> None:
        """Do what is posted until so much was answered or went wrong."""
        self.until(lambda: len(self.told) + len(self.errors) >= count)

    def waiting_for_the_lock(self) -> Task:
        """Work that is running, and stays so while somebody else writes."""
        task = self.start(SYNC)
        self.until(lambda: task.stage.startswith("waiting"))
        return task


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three files, one of them changed since it was indexed."""
    folder = tmp_path_factory.mktemp("template") / "store"
    with InspectedStore.create(
        str(folder), layout="tree", embedder="builtin", configuration=str(folder)
    ) as store:
        for name in ("bread", "milk", "salt"):
            (folder / "chunked" / f"{name}.md").write_text(f"A text about {name}.\n")
        store.sync()
    (folder / "chunked" / "milk.md").write_text("Another text, about cheese.\n")
    return folder


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A store of one's own, in which one file drifted."""
    subprocess.run(["cp", "-a", str(template), str(tmp_path / "store")], check=True)
    return tmp_path / "store"


@pytest.fixture
def stage(root: Path) -> Iterator[Stage]:
    """A task manager over the store."""
    found = Stage(root)
    yield found
    found.task_manager.end()


@pytest.fixture
def locked(root: Path) -> Iterator[None]:
    """Somebody else is writing."""
    with writer_lock(str(root / ".sidecar" / "lock"), command="a test"):
        yield


def files_of(store: InspectedStore) -> int:
    """How many files a store has, and so whether it answers."""
    return sum(one["chunks"] for one in store.resources())


# Reading


def test_reads_are_answered_on_the_screens_thread(stage: Stage) -> None:
    """The store is read elsewhere; the answer comes here."""
    seen: list[threading.Thread] = []
    stage.task_manager.read(
        lambda store: seen.append(threading.current_thread()) or files_of(store),
        stage.tell,
        group="",
    )
    stage.until_told()
    assert stage.told == [3]
    assert stage.threads == {threading.current_thread()}
    assert seen[0] is not threading.current_thread()


def test_newest_read_of_a_group_wins_and_urgent_ones_go_first(stage: Stage) -> None:
    """What another question took the place of is never put, and what is in sight is put first."""
    gate = threading.Event()
    put: list[str] = []

    def question(name: str) -> Callable[[InspectedStore], str]:
        return lambda _: put.append(name) or name

    read = stage.task_manager.read
    read(lambda _: gate.wait(9 * PATIENCE_S) and "old", stage.tell, group="preview")
    for name in ("one", "two", "three"):
        read(question(name), stage.tell, group="preview")
    read(question("late"), stage.tell, group="")
    read(question("in sight"), stage.tell, group="page", urgent=True)
    gate.set()
    stage.until_told(3)
    assert put == ["in sight", "three", "late"]
    assert stage.told == put


def test_failed_read_is_told_and_the_store_opened_again(stage: Stage) -> None:
    """An error is told to who asked, else to the frame; the next question finds a fresh store."""
    stores: list[InspectedStore] = []
    own: list[FilestoreError] = []

    def fail(store: InspectedStore) -> None:
        stores.append(store)
        raise ZeroDivisionError("by nought")

    stage.task_manager.read(fail, stage.tell, group="a")
    stage.task_manager.read(fail, stage.tell, group="b", failed=own.append)
    stage.task_manager.read(lambda store: store.show("absent.md"), stage.tell, group="c")
    stage.task_manager.read(
        lambda store: stores.append(store) or files_of(store), stage.tell, group=""
    )
    stage.until(lambda: stage.told)
    assert [error.message for error in own] == ["unexpected: ZeroDivisionError: by nought"]
    assert [type(error).__name__ for error in stage.errors] == [
        "UnexpectedError",
        "UnknownPathError",
    ]
    assert len({id(store) for store in stores}) == 3
    assert stage.told == [3]


def test_reopened_store_is_another(stage: Stage) -> None:
    """After `reopen` the store is opened as it is then."""
    stores: list[InspectedStore] = []
    for _ in range(2):
        stage.task_manager.read(stores.append, stage.tell, group="")
    stage.until_told(2)
    stage.task_manager.reopen()
    stage.task_manager.read(stores.append, stage.tell, group="")
    stage.until_told(3)
    assert stores[0] is stores[1]
    assert stores[1] is not stores[2]


def test_catalog_made_anew_is_read_without_being_told(stage: Stage, root: Path) -> None:
    """Where somebody else makes the index again, reads and questions answer from the new one."""
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.ask("search", query="pepper", mode="keyword", k=1)
    stage.until_told(2)
    shutil.rmtree(root / ".sidecar")
    (root / "chunked" / "pepper.md").write_text("A text about pepper.\n")
    with InspectedStore(str(root), configuration=str(root)) as store:
        store.sync()
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.until_told(3)
    stage.ask("search", query="pepper", mode="keyword", k=1)
    stage.until_told(4)
    assert stage.errors == []
    assert stage.told[2] == 4
    assert [hit.path for hit in stage.told[3].hits] == ["chunked/pepper.md"]


def test_missing_store_is_told_and_found_once_it_is_there(tmp_path: Path, template: Path) -> None:
    """Where no store is the error says so by its class; the next question tries again."""
    stage = Stage(tmp_path / "later")
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.work("status")
    stage.until(lambda: len(stage.errors) == 2)
    assert {type(error).__name__ for error in stage.errors} == {"NoStoreError"}
    subprocess.run(["cp", "-a", str(template), str(stage.root)], check=True)
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.until_told(3)
    assert stage.told == [3]
    stage.task_manager.end()


# Questions and work


def test_questions_are_answered(stage: Stage) -> None:
    """Search, neighbours and map come back as values of the store."""
    stage.ask("search", query="bread", mode="hybrid", k=3, source=())
    stage.ask("neighbours", path="chunked/bread.md", count=2, now=False)
    stage.ask("vector_map", most=100)
    stage.until_told(3)
    assert stage.errors == []
    answer, neighbours, vector_map = stage.told
    assert answer.hits[0].path == "chunked/bread.md"
    assert "chunked/bread.md" not in {one.path for one in neighbours}
    assert vector_map.total == 3


def test_newest_question_of_a_group_wins(stage: Stage) -> None:
    """Answers to questions that another took the place of never come."""
    for query in ("bread", "milk", "salt"):
        stage.ask("search", group="search", query=query, mode="keyword", k=1)
    stage.ask("search", query="bread", mode="keyword", k=1)
    stage.until_told(2)
    assert [answer.query for answer in stage.told] == ["salt", "bread"]


def test_questions_are_tasks_that_keep_nothing_else_from_being_done(stage: Stage) -> None:
    """A question stands among the tasks while it is asked; a short one leaves no trace there."""
    job = Job(name="vector_map", arguments={"most": 10})
    task = stage.task_manager.ask(job, stage.handlers(), group="", title="map")
    assert stage.task_manager.tasks == [task]
    assert (task.title, task.is_question, task.writes) == ("map", True, False)
    assert (stage.task_manager.busy, stage.task_manager.stoppable) == (None, task)
    work = stage.work("status")
    assert (stage.task_manager.busy, stage.task_manager.stoppable) == (work, work)
    stage.until(lambda: task.is_over and work.is_over)
    task.ended_s = task.started_s + 60
    assert stage.task_manager.stoppable is None


def test_a_question_is_given_up_at_once(stage: Stage) -> None:
    """Nobody waits for what was given up, the answer never comes, and the next one is answered."""
    before = set(children(os.getpid()))
    stage.ask("search", query="milk", mode="keyword", k=1)
    stage.until_told()
    (child,) = set(children(os.getpid())) - before
    os.kill(child, signal.SIGSTOP)
    try:
        job = Job(name="search", arguments={"query": "bread", "mode": "keyword", "k": 1})
        task = stage.task_manager.ask(job, stage.handlers(), group="search", title="search bread")
        stage.until(lambda: task.state == "running" and stage.task_manager.busy is task)
        stage.task_manager.stop(task)
        assert (stage.task_manager.busy, stage.task_manager.stoppable) == (None, None)
        stage.until_told(2)
        assert stage.told[1] == "stopped"
    finally:
        os.kill(child, signal.SIGCONT)
    stage.until(lambda: task.is_over)
    assert task in stage.task_manager.tasks
    stage.ask("search", group="search", query="salt", mode="keyword", k=1)
    stage.until_told(3)
    assert stage.told[2].query == "salt"


def test_verification_tells_what_it_finds_and_then_the_whole(stage: Stage) -> None:
    """Findings come before the result, and the task says how it went."""
    task = stage.work("verify", level="full")
    assert (task.state, stage.task_manager.busy) == ("waiting", task)
    stage.until(lambda: task.is_over)
    *found, checked = stage.told
    live = [finding for _, findings in found for finding in findings]
    assert "chunked/milk.md" in {finding.path for finding in live}
    assert "chunked/milk.md" in {finding.path for finding in checked.findings}
    assert (task.state, stage.task_manager.busy) == ("done", None)
    assert task.ended_s is not None
    assert stage.threads == {threading.current_thread()}
    stage.until(lambda: stage.changes > 1)


def test_drift_is_planned_applied_and_taken_back(stage: Stage, root: Path) -> None:
    """A plan crosses to the screen and back again, and what it says is done."""
    from filestore import Policy

    findings: Sequence[Finding] = [Finding(code="modified", path="chunked/milk.md")]
    stage.work("plan", policy=Policy(), findings=findings)
    stage.work("plan", policy=Policy(), findings=[])
    stage.until_told(2)
    plan, nothing = stage.told
    assert [step.path for step in plan.steps] == ["chunked/milk.md"]
    assert nothing.steps == ()
    stage.work("apply", plan=plan)
    stage.work("status")
    stage.until_told(4)
    assert [step.path for step in stage.told[2].applied] == ["chunked/milk.md"]
    assert stage.told[3].clean is True
    (root.parent / "new.txt").write_text("Something new.\n")
    stage.work("run", words=["add", str(root.parent / "new.txt")])
    stage.work("undo", identifier="absent")
    stage.until_told(6)
    assert any((root / "chunked" / "new.txt").iterdir())
    assert [type(error).__name__ for error in stage.errors] == ["BatchMissingError"]


def test_unexpected_error_in_the_child_is_told_and_the_next_job_done(stage: Stage) -> None:
    """A job that breaks says where; its process lives on."""
    broken = stage.work("verify", wrong=1)
    stage.until_told()
    (child,) = children()
    assert stage.errors[0].message.startswith("unexpected: TypeError")
    assert "Traceback" in stage.errors[0].detail
    assert (broken.state, broken.outcome) == ("failed", stage.errors[0].message)
    task = stage.work("status")
    stage.until(lambda: task.is_over)
    assert (task.state, children()) == ("done", [child])


def test_only_the_last_hundred_tasks_are_kept(stage: Stage) -> None:
    """What ended long ago is forgotten, oldest first."""
    tasks = [stage.work("status") for _ in range(105)]
    stage.until(lambda: tasks[-1].is_over)
    last = stage.work("status")
    assert stage.task_manager.tasks == [*tasks[5:], last]


# Stopping, dying, ending


@pytest.mark.usefixtures("locked")
def test_work_is_stopped_where_it_waits_and_where_it_runs(stage: Stage) -> None:
    """What has not begun never does, what runs ends early, and its process does the next job."""
    running = stage.waiting_for_the_lock()
    waiting = stage.start(SYNC)
    (child,) = children()
    stage.task_manager.stop(waiting)
    stage.task_manager.stop(running)
    assert running.state == "stopping"
    stage.until(lambda: running.is_over and waiting.is_over)
    assert (running.state, waiting.state, stage.errors) == ("stopped", "stopped", [])
    assert stage.told == ["stopped", "stopped"]
    after = stage.work("status")
    stage.until(lambda: after.is_over)
    assert (after.state, children()) == ("done", [child])
    stage.task_manager.stop(running)
    assert running.state == "stopped"


@pytest.mark.usefixtures("locked")
def test_questions_are_answered_while_work_runs(stage: Stage) -> None:
    """Long work keeps neither a read nor a question waiting."""
    task = stage.start(SYNC)
    stage.until(lambda: task.state == "running")
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.ask("search", query="bread", mode="keyword", k=1)
    stage.until_told(2)
    assert task.state == "running"


@pytest.mark.usefixtures("locked")
def test_death_of_the_child_is_told_and_another_one_started(stage: Stage) -> None:
    """A child that was killed fails its job with a remedy; the next job has another child."""
    task = stage.waiting_for_the_lock()
    (child,) = children()
    os.kill(child, signal.SIGKILL)
    stage.until(lambda: task.is_over)
    assert task.state == "failed"
    assert "SIGKILL" in stage.errors[0].message
    assert stage.errors[0].remedy
    after = stage.work("status")
    stage.until(lambda: after.is_over)
    (idle,) = children()
    assert (after.state, idle != child) == ("done", True)
    os.kill(idle, signal.SIGKILL)
    os.waitid(os.P_PID, idle, os.WEXITED | os.WNOWAIT)
    last = stage.work("status")
    stage.until(lambda: last.is_over)
    assert last.state == "done"


def test_idle_child_for_work_ends_and_the_next_job_starts_another(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a verification loaded takes no memory once it is over; questions keep their store."""
    monkeypatch.setattr(worker_process, "IDLE_S", 0.2)
    stage.ask("links", path="chunked/bread.md")
    stage.until_told()
    (asked,) = children()
    stage.work("status")
    stage.until_told(2)
    stage.until(lambda: children() == [asked])
    stage.work("status")
    stage.until_told(3)
    assert stage.errors == []
    stage.until(lambda: children() == [asked])


def test_child_is_out_of_the_terminals_reach(stage: Stage) -> None:
    """Ctrl-C on the terminal goes to the processes of its session: the child has its own."""
    stage.work("status")
    stage.until_told()
    (child,) = children()
    assert os.getsid(child) == child
    os.kill(child, signal.SIGINT)
    stage.work("status")
    stage.until_told(2)
    assert (len(stage.told), children()) == (2, [child])


@pytest.mark.parametrize("busy", [False, True])
def test_end_leaves_nothing(root: Path, busy: bool) -> None:
    """No process, thread or open file is left, whatever was under way, and nothing is told."""
    handles = set(os.listdir("/proc/self/fd"))
    threads = threading.active_count()
    stage = Stage(root)
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.ask("search", query="bread", mode="keyword", k=1)
    stage.until_told(2)
    if busy:
        with writer_lock(str(root / ".sidecar" / "lock"), command="a test"):
            stage.waiting_for_the_lock()
            stage.work("status")
            stage.task_manager.end()
    else:
        stage.task_manager.end()
    assert children() == []
    assert threading.active_count() == threads
    assert set(os.listdir("/proc/self/fd")) == handles
    told = list(stage.told)
    stage.task_manager.read(files_of, stage.tell, group="")
    stage.work("status")
    while not stage.posted.empty():
        stage.posted.get()()
    assert (stage.told, children()) == (told, [])


def test_unused_backstage_ends() -> None:
    """Where nothing was asked nothing was started."""
    stage = Stage(Path("/nowhere"))
    threads = threading.active_count()
    stage.task_manager.end()
    assert (threading.active_count(), children()) == (threads, [])


SCREEN: Final = """
import queue, sys, time
from tui.workers.task_manager import TaskManager
from tui.workers.tasks import Opening
from tui.workers.tasks import Handlers, Job

posted = queue.Queue()
stage = TaskManager(
    Opening(root=sys.argv[1], configuration=sys.argv[1]),
    post=posted.put, failed=print, changed=lambda: None,
)
answers = []
def until(reached):
    while not reached():
        posted.get(timeout=60)()
def done(job):
    before = len(answers)
    if job.name in ("verify", "status", "plan", "sync_but"):
        stage.work(job, Handlers(then=answers.append), title="", writes=False)
    else:
        stage.ask(job, Handlers(then=answers.append), group="")
    until(lambda: len(answers) > before)
    return answers[-1]
"""


def test_screens_process_stays_small(root: Path) -> None:
    """Whatever is asked, what is heavy is loaded by the children only; nor do they draw."""
    program = SCREEN + (
        "from filestore import Policy\n"
        "stage.read(lambda store: store.resources(), answers.append, group='')\n"
        "until(lambda: answers)\n"
        "done(Job(name='search', arguments=dict(query='bread', mode='hybrid', k=3)))\n"
        "done(Job(name='neighbours', arguments=dict(path='chunked/bread.md', count=2)))\n"
        "done(Job(name='vector_map', arguments=dict(most=9)))\n"
        "done(Job(name='verify', arguments=dict(level='full')))\n"
        "done(Job(name='plan', arguments=dict(policy=Policy())))\n"
        "done(Job(name='sync_but', arguments=dict(forget=())))\n"
        "stage.end()\n"
        "heavy = {'numpy', 'faiss', 'tantivy', 'torch', 'watchfiles', 'textual', 'rich'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(root)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.usefixtures("locked")
def test_children_end_with_the_screen(root: Path) -> None:
    """When the screen is killed in the middle of work, its children are gone, too."""
    program = SCREEN + (
        "done(Job(name='search', arguments=dict(query='bread', mode='keyword', k=3)))\n"
        # Not the first of all tasks: on a slow machine that is the question.
        "job = Job(name='sync_but', arguments=dict(forget=()))\n"
        "task = stage.work(job, Handlers(then=print), title='', writes=True)\n"
        "until(lambda: task.stage)\n"
        "print('waits', flush=True)\n"
        "time.sleep(60)\n"
    )
    screen = start(program, str(root))
    assert screen.stdout is not None
    try:
        assert screen.stdout.readline() == "waits\n"
        everybody = children(screen.pid)
        assert len(everybody) == 2
    finally:
        screen.kill()
        screen.wait()
        screen.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while any(is_running(pid) for pid in everybody):
        assert time.monotonic() < deadline
        time.sleep(0.02)
