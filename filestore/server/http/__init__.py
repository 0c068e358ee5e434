"""HTTP: who may ask, what is asked, how much of it; the process that serves."""
