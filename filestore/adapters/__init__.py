"""Stores for other frameworks: LangChain, LlamaIndex, Haystack; see docs/adapters.md.

Each needs its library, so each is imported by itself: `filestore.adapters.langchain`.
"""
