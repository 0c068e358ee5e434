"""Vectors in one file or folder beside what they are of: `.ragmd`, FAISS + JSON; converted, too."""
