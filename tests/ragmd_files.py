"""Files as other programs write them: `.ragmd`, and the indexes of FAISS in them."""

import base64
import json

import faiss
import numpy as np
import yaml

from tests.vectors import unit_rows

ROWS = unit_rows(4, dimension=6)
KEYS = [
    *("format_version", "model_name", "embedding_dim", "vector_count", "document_count"),
    *("index_type", "created_at", "updated_at"),
]
NOW = "2026-01-31T12:00:00Z"


def serialized(index):
    """The bytes that FAISS makes of an index."""
    return bytes(faiss.serialize_index(index))


def flat(rows=ROWS):
    """The bytes of a flat index."""
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    return serialized(index)


class Foreign:
    """A file as another program writes it; each part can be set."""

    def __init__(self):
        self.front = dict(
            zip(KEYS, ["1.0", "theirs/model", 6, 4, 2, "IndexFlatIP", NOW, NOW], strict=True)
        )
        self.chunks = [
            {"faiss_id": 0, "document_id": "a", "chunk_key": "c0"},
            {"faiss_id": 1, "document_id": "a", "chunk_key": "c1"},
            {"faiss_id": 2, "document_id": "b", "chunk_key": "c0"},
            {"faiss_id": 3, "document_id": "b", "chunk_key": "c1"},
        ]
        self.documents = {
            name: {
                "id": name,
                "source": f"papers/{name}.pdf",
                "full_text": f"First of {name}. Second, 🜁 of {name}.",
                "content": {"title": f"On {name}", "authors": ["Å", "B"]},
                "chunks": {
                    "c0": {"i_start": 0, "i_end": 11, "faiss_id": at},
                    "c1": {"i_start": 12, "i_end": 27, "faiss_id": at + 1},
                },
            }
            for name, at in (("a", 0), ("b", 2))
        }
        self.index = flat()
        self.table = (
            "| Document ID | Source | Chunks | Title |\n|---|---|---|---|\n| a | b | 2 | x |\n"
        )
        self.order = ["Documents", "Chunks", "Document Metadata", "Vectors"]
        self.fence = "```"
        self.indent = None
        self.width = None

    def text(self):
        """All of it."""
        encoded = base64.b64encode(self.index).decode()
        if self.width:
            encoded = "\n".join(
                encoded[at : at + self.width] for at in range(0, len(encoded), self.width)
            )
        dump = lambda value: json.dumps(value, ensure_ascii=False, indent=self.indent)  # noqa: E731
        bodies = {
            "Documents": self.table,
            "Chunks": f"{self.fence}json\n{dump(self.chunks)}\n{self.fence}\n",
            "Document Metadata": f"{self.fence}json\n{dump(self.documents)}\n{self.fence}\n",
            "Vectors": f"{self.fence}base64\n{encoded}\n{self.fence}\n",
        }
        sections = "".join(f"## {name}\n\n{bodies[name]}\n" for name in self.order)
        front = yaml.safe_dump(self.front, sort_keys=False, allow_unicode=True)
        return f"---\n{front}---\n\n{sections}"

    def data(self):
        """Its bytes."""
        return self.text().encode()

    def changed(self, **parts):
        """The same with other parts."""
        for name, value in parts.items():
            setattr(self, name, value)
        return self


def other_index(description):
    """The rows in an index of another class."""
    index = faiss.index_factory(6, description)
    index.train(np.vstack([ROWS] * 100))
    index.add(ROWS)
    return serialized(index)


def mapped(description):
    """The rows under ids of their own."""
    index = faiss.index_factory(6, description)
    index.add_with_ids(ROWS, np.arange(4))
    return serialized(index)


INDEXES = {
    "IVF2,Flat": other_index("IVF2,Flat"),
    "IDMap,Flat": mapped("IDMap,Flat"),
    "IDMap2,Flat": mapped("IDMap2,Flat"),
}
