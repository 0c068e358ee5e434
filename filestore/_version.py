"""The version, alone so that `filestore --version` and the build read it without importing more."""

__version__ = "0.3.0"
