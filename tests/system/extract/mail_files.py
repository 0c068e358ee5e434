"""Mails made for tests: of the internet, and of Outlook as a compound file."""

import struct
from email.message import EmailMessage

_SECTOR, _SMALL, _CUTOFF = 512, 64, 4096
_END, _FREE, _IS_FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_TEXT, _BYTES, _TIME, _NUMBER = 0x001F, 0x0102, 0x0040, 0x0003


def mail(subject="Boats", text="The boats leave at noon.\n", **headers):
    """A mail of the internet; more is attached by its caller."""
    made = EmailMessage()
    made["From"] = "Ann Writer <ann@example.org>"
    made["To"] = "Ben <ben@example.org>"
    made["Subject"] = subject
    made["Date"] = "Mon, 06 May 2024 10:00:00 +0200"
    for key, value in headers.items():
        made[key.replace("_", "-")] = value
    if text is not None:
        made.set_content(text)
    return made


def attach(made, name, data, kind="application/octet-stream"):
    made.add_attachment(data, *kind.split("/"), filename=name)
    return made


def outlook(head_bytes=32, *, attachments=(), recipients=(), **values):
    """The streams of a mail of Outlook, by what it has: `subject`, `body`, `html`, `sender`."""
    ids = {"subject": 0x0037, "body": 0x1000, "sender": 0x0C1A, "address": 0x0C1F, "html": 0x1013}
    ids |= {"headers": 0x007D, "sent": 0x0039}
    tree = _properties({ids[key]: value for key, value in values.items()}, bytes(head_bytes))
    for number, (name, email) in enumerate(recipients):
        tree[f"__recip_version1.0_#{number:08X}"] = _properties(
            {0x3001: name, 0x39FE: email}, bytes(8)
        )
    for number, (name, content) in enumerate(attachments):
        inner = content if isinstance(content, dict) else None
        stored = {0x3707: name, 0x3705: 5 if inner else 1}
        stored |= {} if inner else {0x3701: content}
        place = _properties(stored, bytes(8))
        if inner:
            place["__substg1.0_3701000D"] = inner
        tree[f"__attach_version1.0_#{number:08X}"] = place
    return tree


def _properties(values, head):
    tree, table = {}, [head]
    for pid, value in values.items():
        if isinstance(value, int):
            kind = _TIME if pid == 0x0039 else _NUMBER
            table.append(struct.pack("<HHIQ", kind, pid, 6, value))
            continue
        kind = _BYTES if isinstance(value, bytes) else _TEXT
        data = value if isinstance(value, bytes) else value.encode("utf-16-le")
        tree[f"__substg1.0_{pid:04X}{kind:04X}"] = data
        table.append(struct.pack("<HHII4x", kind, pid, 6, len(data)))
    return {"__properties_version1.0": b"".join(table), **tree}


def compound(tree):
    """A compound file of streams and storages, as names and bytes or further trees."""
    entries, small, blocks = [["Root Entry", 5, _FREE, b"", _FREE]], b"", []

    def add(inner):
        """Children are a list linked to the right; the first is returned."""
        following = _FREE
        for name, content in reversed(inner.items()):
            is_folder = isinstance(content, dict)
            child = add(content) if is_folder else _FREE
            entries.append([name, 1 if is_folder else 2, child, content, following])
            following = len(entries) - 1
        return following

    entries[0][2] = add(tree)
    starts, small_fat = {}, []
    for number, (_, kind, _, content, _) in enumerate(entries):
        if kind != 2 or not content:
            continue
        if len(content) >= _CUTOFF:
            blocks.append((number, content))
            continue
        count = -(-len(content) // _SMALL)
        starts[number] = len(small_fat)
        small_fat += [*range(len(small_fat) + 1, len(small_fat) + count), _END]
        small += content.ljust(count * _SMALL, b"\0")
    fat, sectors = [], b""

    def store(data):
        nonlocal sectors
        first, count = len(fat), max(1, -(-len(data) // _SECTOR))
        fat.extend([*range(first + 1, first + count), _END])
        sectors += data.ljust(count * _SECTOR, b"\0")
        return first

    for number, content in blocks:
        starts[number] = store(content)
    starts[0] = store(small)
    small_start = store(struct.pack(f"<{len(small_fat)}I", *small_fat).ljust(_SECTOR, b"\xff"))
    directory = b"".join(
        (name.encode("utf-16-le") + b"\0\0").ljust(64, b"\0")
        + struct.pack("<HBBIII", 2 * len(name) + 2, kind, 1, _FREE, following, child)
        + bytes(36)
        + struct.pack("<IQ", starts.get(number, _END), len(small) if kind == 5 else _size(content))
        for number, (name, kind, child, content, following) in enumerate(entries)
    )
    directory_start = store(directory)
    fat_count = 1
    while fat_count * 128 < len(fat) + fat_count:
        fat_count += 1
    fat_starts = list(range(len(fat), len(fat) + fat_count))
    table = [*fat, *[_IS_FAT] * fat_count]
    sectors += struct.pack(f"<{len(table)}I", *table).ljust(fat_count * _SECTOR, b"\xff")
    small_sectors = -(-max(1, len(small_fat)) // 128)
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack(
        "<HHHHH6xIIIIIIIIII",
        0x3E,
        3,
        0xFFFE,
        9,
        6,
        0,
        fat_count,
        directory_start,
        0,
        _CUTOFF,
        small_start,
        small_sectors,
        _END,
        0,
        fat_starts[0],
    )
    head += struct.pack("<108I", *(fat_starts[1:] + [_FREE] * 108)[:108])
    return head + sectors


def _size(content):
    return len(content) if isinstance(content, bytes) else 0
