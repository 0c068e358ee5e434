"""A store as it was at an earlier commit: asked, compared with today, and its changes listed.

The work tree is never touched. What a commit had is indexed in a view, a store of its own in the
sidecar; a text that was embedded once is not embedded again for it.
"""
