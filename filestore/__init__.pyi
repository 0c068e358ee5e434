"""The public names, each once; `__init__.py` loads them as they are first used."""

from filestore._version import __version__ as __version__
from filestore.config.layout import NoStoreError as NoStoreError
from filestore.core.codes import CODES as CODES
from filestore.core.errors import FilestoreError as FilestoreError
from filestore.core.errors import RefusedError as RefusedError
from filestore.core.errors import UsageError as UsageError
from filestore.core.findings import Finding as Finding
from filestore.core.progress import Progress as Progress
from filestore.fs.lock import LockedError as LockedError
from filestore.ingest.add import AddReport as AddReport
from filestore.ingest.update import UpdateReport as UpdateReport
from filestore.repair.plan import Plan as Plan
from filestore.repair.plan import Policy as Policy
from filestore.repair.plan import Step as Step
from filestore.repair.request import RepairReport as RepairReport
from filestore.repair.undo import UndoResult as UndoResult
from filestore.search import Query as Query
from filestore.search.answer import Answer as Answer
from filestore.search.answer import Hit as Hit
from filestore.store import Store as Store
from filestore.store import create as create
from filestore.store import open as open
from filestore.store.threads import StoreThreads as StoreThreads
from filestore.sync.apply import SyncReport as SyncReport
from filestore.verify.run import Checked as Checked
from filestore.verify.run import Status as Status
